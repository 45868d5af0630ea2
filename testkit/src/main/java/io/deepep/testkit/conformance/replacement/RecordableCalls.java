package io.deepep.testkit.conformance.replacement;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.normal.NormalRank;
import java.util.HashMap;
import java.util.Map;

/**
 * A pair of calls of each mode over the same memory, whatever exchange it holds: enqueued as they
 * are, or recorded once and replayed.
 */
final class RecordableCalls {
    private static final CallOptions ASYNC = CallOptions.async();
    private static final LowLatencyFormat FORMAT = LowLatencyFormat.FP8;

    private final RankContext context;
    private final ReplacedGroup group;
    private final int rows;
    private final NormalRank normal;
    private final Tensor outputs;
    private final DispatchPlan dispatch;
    private final LowLatencyRank low;
    private final LowLatencyDispatchPlan lowDispatch;
    private final Map<LowLatencyHandle, LowLatencyCombinePlan> lowCombines = new HashMap<>();
    private CombinePlan combine;
    private DispatchResult received;
    private CombineResult home;
    private LowLatencyCombineResult lowHome;
    private long seed;

    RecordableCalls(RankContext context, ReplacedGroup group) {
        this.context = context;
        this.group = group;
        this.rows = group.mostRows();
        this.normal = normal(0);
        this.outputs = normal.outputs();
        this.dispatch = normal.plan().numWorstTokens(rows).build();
        this.low = new LowLatencyRank(context, group.lowLatency(0));
        this.lowDispatch = low.plan(FORMAT).build();
    }

    private NormalRank normal(long number) {
        NormalRank rank = new NormalRank(context, group.normal(number));
        return rank.expecting(rank.check().worstCase(rows));
    }

    void enqueue() {
        Buffer buffer = context.buffer();
        received = buffer.dispatch(dispatch, ASYNC);
        if (combine == null) {
            combine = CombinePlan.builder(outputs, received.handle()).build();
        }
        home = buffer.combine(combine, ASYNC);
        LowLatencyDispatchResult lowReceived = buffer.lowLatencyDispatch(lowDispatch, ASYNC);
        lowHome =
                buffer.lowLatencyCombine(
                        lowCombines.computeIfAbsent(
                                lowReceived.handle(), handle -> low.home(handle).build()),
                        ASYNC);
    }

    /** Writes another exchange over this one. */
    void load(long next) {
        seed = next;
        NormalRank other = normal(seed);
        normal.load(other);
        context.copy(other.outputs(), outputs);
        low.load(new LowLatencyRank(context, group.lowLatency(seed)));
    }

    /**
     * Compares; of the low-latency dispatch what its combine makes of it, because its handle is of
     * before the replacement, and no longer describes the rows of a replay.
     */
    void verify() {
        NormalRank expected = normal(seed);
        expected.verify(received);
        expected.verify(home);
        LowLatencyRank lowExpected = new LowLatencyRank(context, group.lowLatency(seed));
        lowExpected.verify(lowHome);
    }

    /** Until everything is prepared that can be: low-latency results are kept for two calls. */
    void prepare() {
        for (int i = 0; i < 2; i++) {
            enqueue();
            verify();
        }
    }
}
