package io.deepep.bench.lowlatency;

import com.sun.management.ThreadMXBean;
import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.bench.run.CollectiveCall;
import io.deepep.bench.run.Session;
import java.lang.management.ManagementFactory;
import java.util.IdentityHashMap;
import java.util.List;

/**
 * The layers of a decoding step, each a dispatch of FP8 rows and a combine of rows that lie in the
 * buffer, with reused plans. As by an engine whose kernels run on the buffer's stream: no event
 * lies between the calls.
 */
final class DecodeLoop implements CollectiveCall {
    /** Results are kept for two dispatches, so every second one finds the memory of the first. */
    private static final int NUM_PREPARED = 2;

    private final Session session;
    private final LowLatencyWorkload workload;
    private final DecodeBench.Step step;
    private final List<Rank> ranks;

    DecodeLoop(LowLatencySetup setup, DecodeBench.Step step, int sms) {
        this.session = setup.session();
        this.workload = setup.workload();
        this.step = step;
        this.ranks = session.ask(rank -> new Rank(rank, sms));
        session.run(rank -> ranks.get(rank).run(NUM_PREPARED, CallOptions.sync()));
    }

    /** One rank's plans and latest results. */
    private final class Rank {
        private final int rank;
        private final Buffer buffer;
        private final CallOptions inOrder;
        private final int sms;
        private final LowLatencyDispatchPlan dispatch;
        private final IdentityHashMap<LowLatencyHandle, LowLatencyCombinePlan> combines =
                new IdentityHashMap<>();
        private LowLatencyDispatchResult received;
        private LowLatencyCombineResult home;

        Rank(int rank, int sms) {
            this.rank = rank;
            this.sms = sms;
            this.buffer = session.buffer(rank);
            this.inOrder = CallOptions.sync().on(buffer.communicationStream());
            this.dispatch =
                    workload.dispatch(rank, LowLatencyFormat.FP8, step.rows().preReduced())
                            .numSms(sms)
                            .build();
        }

        void run(int number, CallOptions options) {
            for (int layer = 0; layer < number; layer++) {
                received = buffer.lowLatencyDispatch(dispatch, options);
                LowLatencyCombinePlan combine = combines.get(received.handle());
                if (combine == null) {
                    combine = combineOf(received.handle());
                    combines.put(received.handle(), combine);
                }
                home = buffer.lowLatencyCombine(combine, options);
            }
        }

        private LowLatencyCombinePlan combineOf(LowLatencyHandle handle) {
            Tensor input = workload.outputsInBuffer(rank, handle);
            return workload.combine(rank, input, handle, step.rows()).numSms(sms).build();
        }
    }

    /** Enqueues the layers in the order of the buffer's stream, whatever {@code options} say. */
    @Override
    public Event call(int rank, CallOptions options) {
        Rank mine = ranks.get(rank);
        mine.run(step.layers(), mine.inOrder);
        return mine.home.event();
    }

    /** How many calls of {@link Buffer} a step makes. */
    int numCalls() {
        return 2 * step.layers();
    }

    /** Bytes that a call leaves on the Java heap, the least of several steps of the first rank. */
    double bytesPerCall() {
        long[] least = {Long.MAX_VALUE};
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (int step = 0; step < 5; step++) {
            session.run(
                    rank -> {
                        long before = threads.getCurrentThreadAllocatedBytes();
                        call(rank, CallOptions.async());
                        long made = threads.getCurrentThreadAllocatedBytes() - before;
                        session.buffer(rank).communicationStream().synchronize();
                        if (rank == session.team().localRanks().getFirst()) {
                            least[0] = Math.min(least[0], made);
                        }
                    });
        }
        return (double) least[0] / numCalls();
    }

    /** Holds what the last layer gave {@code rank} against the oracle. */
    void verify(int rank) {
        Rank mine = ranks.get(rank);
        mine.home.event().synchronize();
        workload.verify(rank, LowLatencyFormat.FP8, mine.received);
        workload.verify(rank, step.rows(), mine.home.x());
    }
}
