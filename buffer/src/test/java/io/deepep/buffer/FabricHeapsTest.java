package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.testkit.Programs;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** An NVLink domain of two hosts, on emulated GPUs whose memory has fabric handles, or not. */
class FabricHeapsTest {
    private static final LowLatencyShape SHAPE = new LowLatencyShape(1, 4, 8, 256, 4, 16);
    private static final int LOCAL_SIZE = 2;
    private static final String SAID = "rank: ";

    /** The driver reads how its GPUs are once in a process. */
    @ParameterizedTest
    @CsvSource({
        "2, exchanged",
        "1, 'CUDA_ERROR_NOT_PERMITTED, set up nvidia-imex'",
        "0, 'cannot export memory as FABRIC, set up nvidia-imex'"
    })
    @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void domainOfTwoHosts(String fabric, String outcome) throws Exception {
        EmulatedGpus.require("GPUs of two hosts");
        ProcessBuilder builder =
                Programs.java(
                        Program.class, List.of("-Xmx512m", "--add-modules=jdk.incubator.vector"));
        builder.environment().put("DEEPEP_EMULATOR_FABRIC", fabric);
        String said = Programs.run(builder).requireSuccess();
        assertThat(said.lines().filter(line -> line.startsWith(SAID)))
                .hasSize(SHAPE.topology().numRanks())
                .allSatisfy(line -> assertThat(line).contains(outcome.split(", ")));
    }

    /** The ranks, as threads. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) {
            TestBackend backend = TestBackends.load().named(BufferTestBackends.CUDA.name());
            EpTopology topology = SHAPE.topology();
            int numRanks = topology.numRanks();
            NormalWorld world = NormalWorld.of(RoutingSpec.of(numRanks, 8, 16, 4), 256, DType.BF16);
            Ranks.runBare(
                    backend,
                    topology,
                    threads -> {
                        ApartRanks communicator =
                                new ApartRanks(threads, LOCAL_SIZE, new ArrayList<>());
                        Buffer.Builder builder =
                                Ranks.builder(backend, communicator, topology)
                                        .normal(world.limits())
                                        .lowLatency(SHAPE.limits());
                        try (Buffer buffer = builder.open()) {
                            RankContext context = new RankContext(backend, communicator, buffer);
                            SHAPE.rank(context, 0).roundTrip(LowLatencyFormat.FP8);
                            context.meet();
                            System.out.println(SAID + "exchanged");
                        } catch (DeepEpUnavailableException refused) {
                            System.out.println(SAID + refused.getMessage().replace('\n', ' '));
                        }
                    });
        }
    }
}
