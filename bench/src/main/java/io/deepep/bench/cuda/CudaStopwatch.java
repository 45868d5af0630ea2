package io.deepep.bench.cuda;

import io.deepep.CallOptions;
import io.deepep.EpTopology;
import io.deepep.Event;
import io.deepep.Graph;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.measure.Timing;
import io.deepep.bench.run.CollectiveCall;
import io.deepep.bench.run.PerRank;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Session;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.memory.CudaMemory;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/**
 * Times operations by events around them on each rank's communication stream. Before each run the
 * level 2 cache is flushed and the streams wait for one another on the GPU; the operation is
 * enqueued while they wait, so a sample is what the GPU does, of the slowest rank. A dispatch that
 * waits for its counts on the host has that inside.
 *
 * <p>Streams of several hosts cannot wait for one another. There each run comes right after an
 * unmeasured one of the same operation, which no rank leaves before all have come to it. A sample
 * is then too long by as much as its rank has left that run before another, never too short.
 *
 * <p>Unmeasured runs follow each other without a break: they bring the host's code, which the
 * virtual machine compiles as it is used, to the speed it has in an engine.
 */
public final class CudaStopwatch implements AutoCloseable {
    /** Longer than the host takes to enqueue an operation on all ranks, code not yet compiled. */
    private static final Duration PAUSE = Duration.ofMillis(1);

    private static final double NANOS_PER_MICRO = 1e3;

    /** Of a block of the low-latency kernels. */
    private static final int LOW_LATENCY_THREADS = 768;

    private final Session session;
    private final RankTeam team;
    private final PeerMemory flags;
    private final PerRank<Lane> lanes;

    /** What one rank times with. The rank's thread alone uses it. */
    private static final class Lane implements AutoCloseable {
        private final CudaStream stream;
        private final CudaEvent start;
        private final CudaEvent end;
        private final CudaMemory flush;
        private final StreamGate gate;
        private final boolean reachesAll;

        /** The smallest kernel there is. */
        private final StreamGate openGate;

        /** A launch of a low-latency kernel's size that does nothing. */
        private final BenchModule empty;

        private final KernelStruct.Params emptyParams;
        private final LaunchConfig emptyLaunch;

        private long[] work;
        private long[] calls;
        private long[] enqueues;

        Lane(CudaStream stream, StreamGate gate, boolean reachesAll) {
            CudaContext context = stream.context();
            this.stream = stream;
            this.gate = gate;
            this.reachesAll = reachesAll;
            openGate = new StreamGate(context);
            empty = BenchModule.load(context, "empty");
            emptyParams = BenchStructs.EMPTY.allocate(Arena.ofAuto());
            emptyLaunch = new LaunchConfig(Arena.ofAuto(), 1, LOW_LATENCY_THREADS);
            start = CudaEvent.createTiming(context);
            end = CudaEvent.createTiming(context);
            flush = CudaMemory.allocate(context, 2L * context.cudaDevice().l2Bytes());
        }

        void launchEmpty(int numBlocks) {
            empty.function().launch(emptyLaunch.grid(numBlocks), emptyParams.memory(), stream);
        }

        void measure(int rank, CollectiveCall operation, int warmups, int repeats) {
            for (int i = 0; i < warmups; i++) {
                operation.call(rank, CallOptions.async()).synchronize();
            }
            work = new long[repeats];
            calls = new long[repeats];
            enqueues = new long[repeats];
            for (int i = -1; i < repeats; i++) {
                timeWork(rank, operation, Math.max(i, 0));
            }
            for (int i = 0; i < repeats; i++) {
                timeHost(rank, operation, i);
            }
        }

        /** Where the gate does not reach all ranks, the operation itself does. */
        private void meetOtherHosts(int rank, CollectiveCall operation) {
            if (!reachesAll) {
                operation.call(rank, CallOptions.async());
            }
        }

        private void timeWork(int rank, CollectiveCall operation, int run) {
            meetOtherHosts(rank, operation);
            stream.fillBytes(flush.address(), (byte) 0, flush.numBytes());
            gate.enqueue(stream, PAUSE);
            stream.record(start);
            Event done = operation.call(rank, CallOptions.async());
            stream.record(end);
            done.synchronize();
            end.synchronize();
            work[run] = Math.round(end.elapsedMicros(start) * NANOS_PER_MICRO);
        }

        private void timeHost(int rank, CollectiveCall operation, int run) {
            meetOtherHosts(rank, operation);
            gate.enqueue(stream, Duration.ZERO);
            stream.synchronize();
            long begin = System.nanoTime();
            Event done = operation.call(rank, CallOptions.async());
            enqueues[run] = System.nanoTime() - begin;
            done.synchronize();
            calls[run] = System.nanoTime() - begin;
        }

        @Override
        public void close() {
            flush.close();
            start.close();
            end.close();
            gate.close();
            openGate.close();
            empty.close();
        }
    }

    private CudaStopwatch(Session session, PeerMemory flags, PerRank<Lane> lanes) {
        this.session = session;
        this.team = session.team();
        this.flags = flags;
        this.lanes = lanes;
    }

    /** A stopwatch for the session's open buffers; close it before them. */
    public static CudaStopwatch open(Session session) {
        boolean reachesAll = PeerMemory.reachesAll(session);
        EpTopology topology = session.job().topology();
        int together = reachesAll ? topology.numRanks() : topology.numNvlRanks();
        PeerMemory flags = PeerMemory.allocate(session, StreamGate.flagsBytes(together));
        try {
            PerRank<Lane> lanes =
                    PerRank.open(
                            session.team(),
                            rank ->
                                    new Lane(
                                            stream(session, rank),
                                            gate(session, flags, rank, together),
                                            reachesAll));
            return new CudaStopwatch(session, flags, lanes);
        } catch (RuntimeException failed) {
            flags.close();
            throw failed;
        }
    }

    /** Of the {@code together} ranks around {@code rank}. */
    private static StreamGate gate(Session session, PeerMemory flags, int rank, int together) {
        int index = rank % together;
        long table = flags.table(rank) + (long) Long.BYTES * (rank - index);
        return new StreamGate(
                stream(session, rank).context(), table, index, together, session.job().timeout());
    }

    /** The stream that the operations of a local rank run on. */
    static CudaStream stream(Session session, int rank) {
        return (CudaStream) session.buffer(rank).communicationStream();
    }

    /** A kernel that does nothing, launched {@code number} times, each followed by an event. */
    public CollectiveCall bareLaunches(int number) {
        return (rank, options) -> {
            Lane lane = lanes.get(rank);
            CudaEvent last = CudaEvent.create(lane.stream.context());
            for (int i = 0; i < number; i++) {
                lane.openGate.enqueue(lane.stream, Duration.ZERO);
                lane.stream.record(last);
            }
            return last;
        };
    }

    /** A kernel of a low-latency kernel's size that does nothing. */
    public CollectiveCall emptyKernel(int numBlocks) {
        return (rank, options) -> {
            Lane lane = lanes.get(rank);
            CudaEvent done = CudaEvent.create(lane.stream.context());
            lane.launchEmpty(numBlocks);
            lane.stream.record(done);
            return done;
        };
    }

    /** The stream that operations of {@code rank} run on. */
    CudaStream stream(int rank) {
        return lanes.get(rank).stream;
    }

    /**
     * Times an operation on all ranks.
     *
     * @param warmups calls before those that count
     * @param repeats calls that count
     */
    public Timing measure(CollectiveCall operation, int warmups, int repeats) {
        // A first call allocates, which must not wait behind a gate that waits for it.
        team.run(operation.synchronous());
        team.run(rank -> lanes.get(rank).measure(rank, operation, warmups, repeats));
        return new Timing(
                slowest(lane -> lane.work),
                slowest(lane -> lane.calls),
                slowest(lane -> lane.enqueues));
    }

    /** The same of what an operation that was called before enqueues, replayed as a graph. */
    public Timing measureAsGraph(CollectiveCall operation, int warmups, int repeats) {
        try (PerRank<Graph> graphs = PerRank.open(team, rank -> capture(rank, operation))) {
            CollectiveCall replay =
                    (rank, options) -> {
                        graphs.get(rank).replay();
                        return stream(rank).record();
                    };
            return measure(replay, warmups, repeats);
        }
    }

    private Graph capture(int rank, CollectiveCall operation) {
        return Graph.capture(stream(rank), () -> operation.call(rank, CallOptions.async()));
    }

    private Samples slowest(Function<Lane, long[]> times) {
        List<long[]> local =
                team.localRanks().stream().map(rank -> times.apply(lanes.get(rank))).toList();
        long[] slowest = local.getFirst().clone();
        local.forEach(each -> Arrays.setAll(slowest, i -> Math.max(slowest[i], each[i])));
        return Samples.of(session.slowest(slowest));
    }

    @Override
    public void close() {
        try (flags) {
            lanes.close();
        }
    }
}
