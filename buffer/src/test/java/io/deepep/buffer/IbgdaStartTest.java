package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicOverride;
import io.deepep.cuda.topology.PciAddress;
import io.deepep.testkit.CardFolder;
import io.deepep.testkit.Programs;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Eight ranks start over cards that GPUs drive, in a process that never touches NVSHMEM. */
@Tag("checkout") // needs the script that shows the cards
class IbgdaStartTest {
    private static final LowLatencyShape SHAPE = new LowLatencyShape(2, 4, 8, 256, 8, 64);
    private static final String OPENED = "buffers open after ms: ";
    private static final String PORTS = "ports of a GPU: ";
    private static final String MAPPED = "mapped: ";
    private static final String DONE = "exchanged";
    private static final String LOADED = "classes";
    private static final String CARD = "card";

    @TempDir private Path folder;

    @BeforeAll
    static void requireCard() {
        CardCases.requireCard();
    }

    /** With several ports, the queue pairs to a peer use them in turn. */
    @ParameterizedTest
    @CsvSource({"1, 1, infiniband, 8, 1", "2, 2, infiniband, 2, 2", "1, 4, ethernet, 2, 2"})
    @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void eightRanks(int cards, int ports, String link, int gpus, int portsOfGpu) throws Exception {
        List<String> said = run(new Host(cards, ports, link, gpus), Mode.LOW_LATENCY);
        assertThat(said)
                .contains(PORTS + portsOfGpu, DONE)
                .anyMatch(line -> line.startsWith(OPENED));
        said.stream().filter(line -> line.startsWith(OPENED)).forEach(System.out::println);
        assertThat(said)
                .filteredOn(line -> line.startsWith(MAPPED))
                .anyMatch(line -> line.contains("libmlx5"))
                .noneMatch(line -> line.contains("nvshmem"));
        assertThat(Files.readAllLines(folder.resolve(LOADED)))
                .anyMatch(line -> line.contains("io.deepep.cuda.ibgda."))
                .noneMatch(line -> line.contains("io.deepep.cuda.nvshmem."));
    }

    /** Two GPUs with two ports each send what they send with one, and all four carry it. */
    @ParameterizedTest
    @EnumSource(Mode.class)
    @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void allPortsCarry(Mode mode) throws Exception {
        run(new Host(1, 2, "infiniband", 2), mode);
        Map<String, Long> twoPorts = new CardFolder(folder.resolve(CARD)).bytesByPort();
        long sum = sum(twoPorts);
        assertThat(twoPorts).hasSize(2);
        run(new Host(2, 2, "infiniband", 2), mode);
        Map<String, Long> fourPorts = new CardFolder(folder.resolve(CARD)).bytesByPort();
        assertThat(fourPorts.keySet())
                .containsExactlyInAnyOrder("mlx5_0:1", "mlx5_0:2", "mlx5_1:1", "mlx5_1:2");
        assertThat(fourPorts.values()).as("%s", fourPorts).allMatch(bytes -> bytes > sum / 8);
        assertThat(sum(fourPorts)).isEqualTo(sum);
    }

    private static long sum(Map<String, Long> bytes) {
        return bytes.values().stream().mapToLong(Long::longValue).sum();
    }

    private record Host(int cards, int ports, String link, int gpus) {}

    /** What ranks exchange. */
    enum Mode {
        NORMAL,
        LOW_LATENCY
    }

    /** Runs the ranks in a process of their own; what it said. */
    private List<String> run(Host host, Mode mode) throws Exception {
        Path sysfs = folder.resolve("sys");
        Process made =
                new ProcessBuilder(
                                "bash",
                                "../native/src/softcard/sysfs.sh",
                                sysfs.toString(),
                                "" + host.cards,
                                "" + host.ports,
                                host.link,
                                "" + host.gpus)
                        .inheritIO()
                        .start();
        assertThat(made.waitFor()).isZero();
        ProcessBuilder builder =
                Programs.java(
                        Program.class,
                        List.of(
                                "-Xmx512m",
                                "-Xlog:class+load:file=" + folder.resolve(LOADED),
                                "--add-modules=jdk.incubator.vector",
                                "-Ddeepep.sysfs=" + sysfs),
                        mode.name());
        builder.environment().keySet().removeIf(name -> name.contains("NVSHMEM"));
        builder.environment()
                .putAll(
                        Map.of(
                                "DEEPEP_CARD_FOLDER",
                                folder.resolve(CARD).toString(),
                                "DEEPEP_CARD_DEVICES",
                                "" + host.cards,
                                "DEEPEP_CARD_PORTS",
                                "" + host.ports,
                                "DEEPEP_CARD_LINK",
                                host.link,
                                "DEEPEP_EMULATOR_GPUS",
                                "" + host.gpus,
                                // Several blocks of each rank that send.
                                "DEEPEP_EMULATOR_SMS",
                                "32"));
        Process process = builder.start();
        List<String> said = process.inputReader().lines().toList();
        assertThat(process.waitFor()).as("%s", said).isZero();
        return said;
    }

    /** The ranks, as threads. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws IOException {
            Mode mode = Mode.valueOf(args[0]);
            TestBackend backend = TestBackends.load().named(BufferTestBackends.CUDA_IBGDA.name());
            EpTopology topology = SHAPE.topology();
            NormalWorld world = NormalWorld.of(RoutingSpec.of(8, 64, 64, 8), 1024, DType.BF16);
            AtomicLong slowest = new AtomicLong();
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
                            RankContext context = new RankContext(backend, communicator, buffer);
                            if (mode == Mode.NORMAL) {
                                NormalRank rank = new NormalRank(context, world);
                                rank.dispatch();
                            } else {
                                SHAPE.rank(context, 0).roundTrip(LowLatencyFormat.FP8);
                            }
                            context.meet();
                        }
                    });
            HostTopology host = HostTopology.read(HostTopology.SYSFS);
            PciAddress gpu = PciAddress.parse(CudaDevice.of(0).pciBusId());
            NicMapping mapping = NicMapping.of(host, NicOverride.parse(""));
            System.out.println(PORTS + mapping.of(gpu).nics().size());
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
