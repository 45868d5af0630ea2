package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Eight ranks start over cards that GPUs drive, in a process that never touches NVSHMEM. */
class IbgdaStartTest {
    private static final LowLatencyShape SHAPE = new LowLatencyShape(2, 4, 8, 256, 8, 64);
    private static final String OPENED = "buffers open after ms: ";
    private static final String MAPPED = "mapped: ";
    private static final String DONE = "exchanged";

    @TempDir private Path folder;

    @BeforeAll
    static void requireCard() {
        CardBackends.requireCard();
    }

    @Test
    @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void eightRanks() throws Exception {
        Path loaded = folder.resolve("classes");
        ProcessBuilder builder =
                new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx512m",
                        "-Xlog:class+load:file=" + loaded,
                        "--enable-native-access=ALL-UNNAMED",
                        "--add-modules=jdk.incubator.vector",
                        "-Ddeepep.sysfs=" + HostTopology.SYSFS,
                        "-cp",
                        System.getProperty("java.class.path"),
                        Program.class.getName());
        builder.environment().keySet().removeIf(name -> name.contains("NVSHMEM"));
        Process process = builder.redirectErrorStream(true).start();
        List<String> said = process.inputReader().lines().toList();
        assertThat(process.waitFor()).as("%s", said).isZero();
        assertThat(said).contains(DONE).anyMatch(line -> line.startsWith(OPENED));
        said.stream().filter(line -> line.startsWith(OPENED)).forEach(System.out::println);
        assertThat(said)
                .filteredOn(line -> line.startsWith(MAPPED))
                .anyMatch(line -> line.contains("libmlx5"))
                .noneMatch(line -> line.contains("nvshmem"));
        assertThat(Files.readAllLines(loaded))
                .anyMatch(line -> line.contains("io.deepep.cuda.ibgda."))
                .noneMatch(line -> line.contains("io.deepep.cuda.nvshmem."));
    }

    /** The ranks, as threads. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws IOException {
            TestBackend backend = TestBackends.load().named(BufferTestBackends.CUDA_IBGDA.name());
            EpTopology topology = SHAPE.topology();
            NormalWorld world = NormalWorld.of(RoutingSpec.of(8, 64, 64, 8), 256, DType.BF16);
            AtomicLong slowest = new AtomicLong();
            ConcurrentHashMap<Object, Object> common = new ConcurrentHashMap<>();
            Ranks.runBare(
                    backend,
                    topology,
                    communicator -> {
                        Buffer.Builder builder =
                                Ranks.builder(backend, communicator, topology)
                                        .normal(world.limits())
                                        .lowLatency(SHAPE.limits());
                        long start = System.nanoTime();
                        try (Buffer buffer = builder.open()) {
                            long took = System.nanoTime() - start;
                            slowest.accumulateAndGet(took, Math::max);
                            RankContext context =
                                    new RankContext(
                                            backend,
                                            buffer.topology(),
                                            communicator,
                                            buffer,
                                            common);
                            SHAPE.rank(context, 0).roundTrip(LowLatencyFormat.FP8);
                            context.meet();
                        }
                    });
            System.out.println(OPENED + slowest.get() / 1_000_000);
            try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
                maps.filter(line -> line.contains(".so"))
                        .map(line -> MAPPED + line.substring(line.indexOf('/')))
                        .distinct()
                        .forEach(System.out::println);
            }
            System.out.println(DONE);
        }
    }
}
