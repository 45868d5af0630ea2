package io.deepep.lowlatency.host;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.Event;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.error.Departure;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeaps;
import io.deepep.host.HostWait;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Operation;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;

/** Rank threads with low-latency kernels and nothing above them. */
final class Group {
    private static final Duration MEETING = Duration.ofSeconds(60);

    private final int numRanks;
    private final LowLatencyLimits limits;
    private CallTimeouts timeouts = new CallTimeouts(MEETING, null);
    private Supplier<List<Departure>> departures = List::of;

    Group(int numRanks, LowLatencyLimits limits) {
        this.numRanks = numRanks;
        this.limits = limits;
    }

    /**
     * How ranks wait.
     *
     * @param whoIsGone asked once per millisecond of a wait
     */
    Group waits(CallTimeouts limitedBy, Supplier<List<Departure>> whoIsGone) {
        timeouts = limitedBy;
        departures = whoIsGone;
        return this;
    }

    /** What one rank does. */
    interface Body {
        void run(Rank rank) throws Exception;
    }

    void run(Body body) throws Exception {
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(communicator -> runRank(communicator, body));
        }
    }

    private void runRank(Communicator communicator, Body body) throws Exception {
        EpTopology topology = new EpTopology(communicator.rank(), numRanks, 1);
        long bytes = LowLatencyLayout.of(limits, topology).layout().sizeBytes();
        try (HostHeaps heaps =
                HostHeaps.open(new HeapRanks(communicator, topology, MEETING), 0, bytes)) {
            HostWait waiter = new HostWait(topology.rank(), heaps.doorbell(), timeouts, departures);
            HostContext context = new HostContext(topology, null, heaps.rdma(), waiter);
            body.run(
                    new Rank(
                            topology.rank(),
                            numRanks,
                            limits,
                            new HostLowLatencyKernels(context, limits, false)));
        }
    }

    /** One rank: its number and its kernels, with short names for what tests do most. */
    record Rank(int rank, int numRanks, LowLatencyLimits limits, HostLowLatencyKernels kernels) {
        Operation<LowLatencyDispatchResult> dispatch(Batch batch, LowLatencyFormat format) {
            return kernels.prepareDispatch(
                    LowLatencyDispatchPlan.builder(batch.x(rank), batch.topkIdx(rank))
                            .format(format)
                            .build());
        }

        /** Runs both halves. */
        static <R> R run(Operation<R> operation) {
            operation.begin();
            operation.complete();
            return operation.result(Event.completed(), null);
        }

        LowLatencyDispatchResult dispatched(Batch batch, LowLatencyFormat format) {
            return run(dispatch(batch, format));
        }

        LowLatencyCombinePlan.Builder home(
                Batch batch, Tensor outputs, LowLatencyDispatchResult result) {
            return LowLatencyCombinePlan.builder(
                    outputs, batch.topkIdx(rank), batch.weights(rank), result.handle());
        }

        /** Combines; returns the sum. */
        Tensor combined(LowLatencyCombinePlan.Builder plan) {
            return run(kernels.prepareCombine(plan.build())).x();
        }

        /** Dispatches as BF16, checks it, sends rows back as they came, and checks the sums. */
        void roundTrip(Batch batch) {
            LowLatencyDispatchResult result = dispatched(batch, LowLatencyFormat.BF16);
            batch.verifyDispatch(rank, LowLatencyFormat.BF16, result);
            batch.verifyEcho(rank, combined(home(batch, result.recvX(), result)));
        }
    }
}
