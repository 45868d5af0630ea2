package io.deepep.buffer;

import static io.deepep.buffer.BufferTestBackends.CUDA;
import static io.deepep.buffer.BufferTestBackends.CUDA_IBGDA;
import static io.deepep.buffer.BufferTestBackends.CUDA_NVSHMEM;
import static io.deepep.buffer.BufferTestBackends.CUDA_VIRTUAL_NODES;
import static io.deepep.buffer.BufferTestBackends.HOST;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.lowlatency.LowLatencyAgreementConformance;
import io.deepep.testkit.conformance.lowlatency.LowLatencyBadInputConformance;
import io.deepep.testkit.conformance.lowlatency.LowLatencyCallConformance;
import io.deepep.testkit.conformance.lowlatency.LowLatencyConformance;
import io.deepep.testkit.conformance.lowlatency.LowLatencyFlightConformance;
import io.deepep.testkit.conformance.lowlatency.LowLatencyGraphConformance;
import io.deepep.testkit.conformance.lowlatency.LowLatencyMaskConformance;
import io.deepep.testkit.conformance.lowlatency.LowLatencyPreReducedConformance;
import io.deepep.testkit.conformance.lowlatency.LowLatencyUnseenConformance;
import io.deepep.testkit.conformance.normal.AgreementConformance;
import io.deepep.testkit.conformance.normal.ArgumentConformance;
import io.deepep.testkit.conformance.normal.BadInputConformance;
import io.deepep.testkit.conformance.normal.NormalCombineConformance;
import io.deepep.testkit.conformance.normal.NormalConformance;
import io.deepep.testkit.conformance.normal.NormalDispatchConformance;
import io.deepep.testkit.conformance.normal.NormalGraphConformance;
import io.deepep.testkit.conformance.normal.NormalMaskConformance;
import io.deepep.testkit.conformance.normal.NormalNodeMaskConformance;
import io.deepep.testkit.conformance.normal.NormalReuseConformance;
import io.deepep.testkit.conformance.normal.RoutingErrorConformance;
import io.deepep.testkit.conformance.replacement.ReplacementConformance;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The conformance suites with ranks in several processes. On GPUs by either way of sharing device
 * memory; processes that share one take turns, so this is slow there.
 */
@Timeout(value = 400, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@BesideOthers
class ProcessConformanceTest {
    private static final List<String> BY_CUDA_IPC = List.of("-Ddeepep.cudaIpc=true");

    @TempDir private Path folder;

    /** Suites that are run together. */
    enum Suites {
        NORMAL(
                NormalDispatchConformance.class,
                NormalReuseConformance.class,
                NormalCombineConformance.class,
                NormalConformance.class),
        BAD_INPUT(
                ArgumentConformance.class,
                RoutingErrorConformance.class,
                AgreementConformance.class,
                BadInputConformance.class),
        GRAPHS(NormalGraphConformance.class),
        MASKS(
                NormalMaskConformance.class,
                NormalNodeMaskConformance.class,
                ReplacementConformance.class), // which is refused
        LOW_LATENCY(
                LowLatencyCallConformance.class,
                LowLatencyFlightConformance.class,
                LowLatencyMaskConformance.class,
                LowLatencyPreReducedConformance.class,
                LowLatencyConformance.class),
        LOW_LATENCY_BAD_INPUT(
                LowLatencyAgreementConformance.class, LowLatencyBadInputConformance.class),
        LOW_LATENCY_GRAPHS(LowLatencyGraphConformance.class, LowLatencyUnseenConformance.class),
        REPLACEMENT(ReplacementConformance.class);

        @SuppressWarnings("ImmutableEnumChecker") // of List.of
        private final List<Class<?>> classes;

        Suites(Class<?>... classes) {
            this.classes = List.of(classes);
        }
    }

    record Group(
            TestBackend backend,
            Suites suites,
            int processes,
            int ranksPerProcess,
            List<String> options) {
        Group(TestBackend backend, Suites suites, int processes, int ranksPerProcess) {
            this(backend, suites, processes, ranksPerProcess, List.of());
        }

        void run(Path folder) throws Exception {
            new ProcessSuites(folder, options)
                    .run(processes, ranksPerProcess, backend, suites.classes);
        }

        @Override
        public String toString() {
            return "%s on %s, %d processes of %d ranks %s"
                    .formatted(
                            suites, backend, processes, ranksPerProcess, String.join(" ", options))
                    .strip();
        }
    }

    static Stream<Group> groups() {
        return usable(
                new Group(HOST, Suites.NORMAL, 2, 1),
                new Group(HOST, Suites.LOW_LATENCY, 2, 2),
                new Group(HOST, Suites.REPLACEMENT, 4, 1),
                new Group(CUDA, Suites.REPLACEMENT, 2, 1),
                new Group(CUDA, Suites.REPLACEMENT, 2, 2),
                new Group(CUDA_VIRTUAL_NODES, Suites.REPLACEMENT, 4, 1),
                new Group(CUDA_IBGDA, Suites.REPLACEMENT, 4, 1),
                new Group(CUDA, Suites.NORMAL, 2, 1),
                new Group(CUDA, Suites.NORMAL, 2, 2),
                new Group(CUDA, Suites.NORMAL, 2, 1, BY_CUDA_IPC),
                new Group(CUDA, Suites.NORMAL, 2, 2, BY_CUDA_IPC),
                new Group(CUDA, Suites.LOW_LATENCY, 2, 1),
                new Group(CUDA, Suites.LOW_LATENCY, 2, 1, BY_CUDA_IPC),
                new Group(CUDA_VIRTUAL_NODES, Suites.NORMAL, 4, 1),
                new Group(CUDA_VIRTUAL_NODES, Suites.NORMAL, 2, 2),
                new Group(CUDA_NVSHMEM, Suites.NORMAL, 4, 1),
                new Group(CUDA_NVSHMEM, Suites.BAD_INPUT, 4, 1),
                new Group(CUDA_NVSHMEM, Suites.GRAPHS, 4, 1),
                new Group(CUDA_NVSHMEM, Suites.MASKS, 4, 1),
                new Group(CUDA_NVSHMEM, Suites.LOW_LATENCY, 4, 1),
                new Group(CUDA_NVSHMEM, Suites.LOW_LATENCY_BAD_INPUT, 4, 1),
                new Group(CUDA_NVSHMEM, Suites.LOW_LATENCY_GRAPHS, 4, 1));
    }

    static Stream<Group> nvshmemGroups() {
        return usable(
                new Group(CUDA_NVSHMEM, Suites.NORMAL, 2, 1),
                new Group(CUDA_NVSHMEM, Suites.LOW_LATENCY, 2, 1));
    }

    static Stream<Group> slowGroups() {
        return usable(new Group(HOST, Suites.NORMAL, 4, 1));
    }

    private static Stream<Group> usable(Group... groups) {
        List<TestBackend> usable = TestBackends.load().usable();
        return Stream.of(groups).filter(group -> usable.contains(group.backend));
    }

    @Cases
    @MethodSource("groups")
    void suites(Group group) throws Exception {
        group.run(folder);
    }

    /** The shortest of NVSHMEM's groups. */
    @Cases
    @MethodSource("nvshmemGroups")
    void ofTwoOverNvshmem(Group group) throws Exception {
        group.run(folder);
    }

    @Tag("slow")
    @Cases
    @MethodSource("slowGroups")
    void slowSuites(Group group) throws Exception {
        group.run(folder);
    }
}
