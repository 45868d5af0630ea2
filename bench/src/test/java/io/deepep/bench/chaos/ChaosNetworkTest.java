package io.deepep.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.CommandLines;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.testkit.CardFolder;
import io.deepep.testkit.Programs;
import io.deepep.testkit.conformance.RequiredBackends;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code deepep chaos} over a network, and what it refuses of one. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ChaosNetworkTest {
    private static final String TWO_NODES = "--backend cuda --ranks-per-node 2 ";

    @TempDir private Path folder;

    private static void requireRefusal(String arguments, String why) {
        CommandLines.runLine("chaos " + arguments).requireComplaint("deepep: " + why);
    }

    @ParameterizedTest
    @ValueSource(strings = {"ibgda", "nvshmem", "peer-memory"})
    void networksConnectNodesOfGpus(String network) {
        requireRefusal(
                "--ranks-per-node 2 --network " + network,
                "--network=" + network + " connects GPUs; give --backend=cuda too");
        requireRefusal(
                "--backend cuda --network " + network,
                "--network="
                        + network
                        + " connects nodes, but all ranks are on one; give --ranks-per-node, less"
                        + " than --ranks=4");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--actions slow | needs a process for each rank; give --ranks-are=processes",
                "--ranks-are processes --return replace | does not let processes continue when one is killed;"
                        + " leave kill out: --actions=throw,leave,pause,freeze,slow,starve"
            })
    void nvshmemHasNeitherThreadsNorOtherRanks(String arguments, String why) {
        requireRefusal(TWO_NODES + "--network nvshmem " + arguments, "--network=nvshmem " + why);
    }

    @Test
    void optionsOfANetworkNeedIt() {
        requireRefusal(
                TWO_NODES + "--mtu 1024",
                "--mtu, --retries, --ack-timeout, --adaptive-routing and --strict-ordering need"
                        + " --network=ibgda");
    }

    private static void requireCard() {
        RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
        Assumptions.assumeTrue(
                RdmaDevice.unavailabilityReason().isEmpty() && CardFolder.ofProcess().isPresent(),
                "no card in software; see -Pemulator");
    }

    private JsonNode overCards(String arguments) throws Exception {
        Path file = folder.resolve("chaos.json");
        ProcessBuilder command =
                CommandLines.process(
                        "chaos --network ibgda --timeout-millis 10000 --trials 2 "
                                + TWO_NODES
                                + arguments,
                        "--json=" + file);
        // Not in this process: ranks get the options of the process that starts them.
        command.command().add(1, "-Ddeepep.sysfs=" + HostTopology.SYSFS);
        assertThat(Programs.run(command).requireSuccess()).contains("2 to a node over ibgda, ");
        JsonNode record = new ObjectMapper().readTree(file.toFile());
        assertThat(record.get("network").asText()).isEqualTo("ibgda");
        return record.get("report");
    }

    @Test
    void threadsOverCards() throws Exception {
        requireCard();
        JsonNode report = overCards("--ranks-are threads --actions throw,leave --seed 25");
        assertThat(ChaosTest.sum(report, "verified")).isEqualTo(2);
        assertThat(ChaosTest.sum(report, "named")).isPositive();
    }

    @Test
    void newRanksInOpenBuffersOverCards() throws Exception {
        requireCard();
        JsonNode report =
                overCards("--ranks-are processes --actions kill --return replace --seed 50");
        assertThat(ChaosTest.sum(report, "verified")).isEqualTo(2);
        assertThat(ChaosTest.sum(report, "replacedInPlace")).isEqualTo(2);
    }
}
