package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Network;
import io.deepep.cuda.CudaModule;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A GPU with two ports: both carry, and one that was down is named and mended. */
class IbgdaPortsTest {
    private static final Duration LONG = Duration.ofSeconds(20);
    private static final Duration SHORT = Duration.ofMillis(300);
    private static final int NUM_ROUNDS = 40;
    private static final List<IbgdaOptions.Port> PORTS =
            IntStream.rangeClosed(1, 2)
                    .mapToObj(number -> new IbgdaOptions.Port("mlx5_0", number, List.of()))
                    .toList();

    private static SoftwareCard card;
    private static CudaModule module;

    private CardRanks ranks;

    @BeforeAll
    static void load() {
        card = SoftwareCard.require();
        Assumptions.assumeTrue("2".equals(System.getenv("DEEPEP_CARD_PORTS")), "one port");
        module = CardRanks.requireChecks();
    }

    @BeforeEach
    void open() {
        card.faults("");
        ranks =
                new CardRanks(
                        2,
                        CardRanks.BLOCKS,
                        new IbgdaOptions(
                                PORTS,
                                Network.Path.DEFAULT,
                                IbgdaOptions.Doorbells.AUTO,
                                true,
                                true,
                                IbgdaOptions.MAX_MESSAGE_BYTES,
                                LONG,
                                LONG));
    }

    @AfterEach
    void close() {
        ranks.close();
        card.faults("");
    }

    @Test
    void bothCarryHalfOfAllBytes() throws Exception {
        Map<String, Long> before = card.bytesByPort();
        assertThat(ranks.exchange(module, NUM_ROUNDS, LONG)).isZero();
        Map<String, Long> after = card.bytesByPort();
        long sent = (long) ranks.numRanks() * NUM_ROUNDS * CardRanks.BLOCKS * CardRanks.SLOT_BYTES;
        for (String port : List.of("mlx5_0:1", "mlx5_0:2")) {
            assertThat(after.get(port) - before.getOrDefault(port, 0L))
                    .as(port)
                    .isEqualTo(sent / 2);
        }
    }

    /** Which ranks cannot mend while it is down, and can when it is back. */
    @ParameterizedTest
    @ValueSource(strings = {"mlx5_0:1", "mlx5_0:2"})
    void onePortIsDownForAWhile(String port) {
        card.faults("port down " + port);
        assertThat(ranks.exchange(module, 1, SHORT)).isPositive();
        ranks.onEach(
                rank ->
                        assertThatThrownBy(() -> ranks.mend(rank))
                                .hasMessageContaining("port " + port + " is not active"));
        assertThat(ranks.failure(0)).get().asString().contains(" through " + port + " to rank 1: ");
        card.faults("");
        ranks.onEach(rank -> ranks.mend(rank));
        ranks.onEach(rank -> assertThat(ranks.failure(rank)).isEmpty());
        ranks.onEach(rank -> ranks.memory(rank).fill((byte) 0));
        assertThat(ranks.exchange(module, NUM_ROUNDS, LONG)).isZero();
    }
}
