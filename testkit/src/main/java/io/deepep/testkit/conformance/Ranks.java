package io.deepep.testkit.conformance;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.GroupLimits;
import io.deepep.InProcessGroup;
import io.deepep.RankFailedException;
import io.deepep.testkit.TestBackend;
import java.time.Duration;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Consumer;

/**
 * Runs a test body on every rank of a group, each on its thread; with {@link ProcessRanks} on those
 * of this process.
 */
public final class Ranks {
    /**
     * Generous for a loaded machine, short enough that a rank whose check failed does not hold up
     * the others for long. {@code -Ddeepep.testTimeout} gives more seconds, for runs under a tool
     * that makes kernels slow.
     */
    public static final Duration TIMEOUT =
            Duration.ofSeconds(Integer.getInteger("deepep.testTimeout", 15));

    private Ranks() {}

    /** What one rank does. */
    @FunctionalInterface
    public interface Body {
        void run(RankContext rank) throws Exception;
    }

    /** Opens a buffer on every rank, runs {@code body} and closes the buffers. */
    public static void run(
            TestBackend backend, EpTopology topology, Consumer<Buffer.Builder> options, Body body) {
        ConcurrentMap<Object, Object> common = new ConcurrentHashMap<>();
        runBare(
                backend,
                topology,
                communicator -> {
                    Buffer.Builder builder = builder(backend, communicator, topology);
                    options.accept(builder);
                    try (Buffer buffer = builder.open()) {
                        body.run(
                                new RankContext(
                                        backend, buffer.topology(), communicator, buffer, common));
                    }
                });
    }

    /** Runs {@code body} on every rank of a new group. */
    public static void runBare(
            TestBackend backend, EpTopology topology, InProcessGroup.RankTask body) {
        if (!fit(backend, topology)) {
            throw new AssertionError(
                    "%s is no group of %s here: give the case a source of arguments that leaves it out"
                            .formatted(topology, backend.name()));
        }
        try {
            if (ProcessRanks.areRequested()) {
                ProcessRanks.run(body);
            } else {
                runThreads(topology, body);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new AssertionError("the ranks did not finish in time", interrupted);
        }
    }

    /**
     * A new group of the ranks of a test, for the calling rank, whatever became of those before it:
     * collective.
     *
     * @param number tells it from others of the same test
     */
    public static Communicator regroup(RankContext context, int number) {
        if (ProcessRanks.areRequested()) {
            return ProcessRanks.regroup(context.communicator());
        }
        int size = context.topology().numRanks();
        InProcessGroup group = context.shared("group " + number, _ -> InProcessGroup.of(size));
        return group.communicator(context.rank());
    }

    /** Whether ranks are threads, which may fail and be there again. */
    public static boolean areThreads() {
        return !ProcessRanks.areRequested();
    }

    private static void runThreads(EpTopology topology, InProcessGroup.RankTask body)
            throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(topology.numRanks())) {
            group.run(body);
        } catch (RankFailedException failed) {
            throw new AssertionError("rank " + failed.rank() + ": " + failed.getCause(), failed);
        }
    }

    /** Whether the backend has such groups, and the processes are one if there are several. */
    public static boolean fit(TestBackend backend, EpTopology topology) {
        return backend.supports(topology)
                && (!ProcessRanks.areRequested() || ProcessRanks.number() == topology.numRanks());
    }

    /** The same, and whether the mode takes such a group and the devices have room for it. */
    public static boolean fit(TestBackend backend, EpTopology topology, boolean lowLatency) {
        GroupLimits limits =
                lowLatency
                        ? GroupLimits.lowLatency(backend.kind())
                        : GroupLimits.normal(backend.kind());
        return fit(backend, topology)
                && limits.refusal(topology).isEmpty()
                && backend.mostRanks(topology, lowLatency) >= topology.numRanks();
    }

    public static Buffer.Builder builder(
            TestBackend backend, Communicator communicator, EpTopology topology) {
        return Buffer.builder(communicator)
                .ranksPerNode(topology.numNvlRanks())
                .device(backend.device(communicator.rank(), communicator.size()))
                .network(backend.network())
                .timeout(TIMEOUT);
    }

    /** Four ranks, on two nodes if the backend can do that. */
    public static EpTopology four(TestBackend backend) {
        EpTopology twoNodes = topology(2, 2);
        return backend.supports(twoNodes) ? twoNodes : topology(1, 4);
    }

    /** A group of {@code nodes} nodes with {@code ranksPerNode} ranks each. */
    public static EpTopology topology(int nodes, int ranksPerNode) {
        return new EpTopology(0, nodes * ranksPerNode, ranksPerNode);
    }
}
