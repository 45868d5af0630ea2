package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** In a network namespace without interfaces, as a sandbox may be. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NoNetworkTest {
    private static final List<String> WITHOUT_NETWORK = List.of("unshare", "-rn");

    @Test
    void aRankWithoutNetworkInterfacesSaysSo() throws IOException, InterruptedException {
        assumeTrue(canLeaveTheNetwork(), "unshare -rn does not work here");
        Map<String, String> variables =
                Map.of(
                        "RANK", "0",
                        "WORLD_SIZE", "1",
                        "LOCAL_RANK", "0",
                        "LOCAL_WORLD_SIZE", "1",
                        "MASTER_ADDR", "127.0.0.1",
                        "MASTER_PORT", "29500",
                        "DEEPEP_SECRET", Groups.SECRET);
        try (RankProcess rank = RankProcess.start(WITHOUT_NETWORK, variables, 60_000, 60_000)) {
            assertThat(rank.leave())
                    .singleElement()
                    .asString()
                    .startsWith("DeepEpUnavailableException: rank 0 finds no network interface")
                    .contains("ip link set lo up");
        }
    }

    private static boolean canLeaveTheNetwork() throws InterruptedException {
        try {
            return new ProcessBuilder("unshare", "-rn", "true").start().waitFor() == 0;
        } catch (IOException noSuchCommand) {
            return false;
        }
    }
}
