package io.deepep.testkit.conformance.replacement;

import io.deepep.CallOptions;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RepeatedCalls;
import io.deepep.testkit.conformance.lowlatency.LowLatencyPairs;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.normal.NormalPair;

/** A pair of calls of each mode; exchanges are those of {@link ReplacedGroup} with these seeds. */
final class CapturableCalls implements RepeatedCalls<Long> {
    private final ReplacedGroup group;
    private final NormalPair normal;
    private final LowLatencyPairs low;

    CapturableCalls(RankContext context, ReplacedGroup group) {
        this.group = group;
        CallOptions async = CallOptions.async();
        normal = NormalPair.worstCase(context, group.normal(0), group.mostRows(), async);
        low = new LowLatencyPairs(new LowLatencyRank(context, group.lowLatency(0)), async);
    }

    @Override
    public void enqueue() {
        normal.enqueue();
        low.enqueue();
    }

    @Override
    public void load(Long seed) {
        normal.load(group.normal(seed));
        low.load(group.lowLatency(seed));
    }

    /**
     * Compares; of the low-latency dispatch what its combine makes of it, because its handle is of
     * before the replacement, and no longer describes the rows of a replay.
     */
    @Override
    public void verify() {
        normal.verify();
        low.verifyHome();
    }
}
