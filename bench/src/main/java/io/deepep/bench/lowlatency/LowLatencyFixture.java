package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyFormat;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.RankTeam;
import java.util.function.IntFunction;

/**
 * Ranks with everything that low-latency operations need, for benchmarks. Every operation reuses
 * its plans.
 */
public final class LowLatencyFixture implements AutoCloseable {
    private final LowLatencySetup setup;
    private final LowLatencyOperations operations;

    private LowLatencyFixture(LowLatencySetup setup) {
        this.setup = setup;
        this.operations = new LowLatencyOperations(setup);
    }

    /**
     * Opens the buffers and verifies every format once.
     *
     * @throws AssertionError if a result is wrong
     */
    public static LowLatencyFixture open(Job job) {
        return open(job, RankSource::inProcess);
    }

    /** {@link #open(Job)} with ranks of one's own. */
    public static LowLatencyFixture open(Job job, IntFunction<RankSource> ranks) {
        LowLatencySetup setup = LowLatencySetup.open(job, ranks);
        LowLatencyBench.cases(setup).forEach(each -> each.run());
        return new LowLatencyFixture(setup);
    }

    /** The rank threads. */
    public RankTeam team() {
        return setup.session().team();
    }

    /** Dispatch. */
    public RankTeam.Work dispatch(LowLatencyFormat format) {
        return operations.dispatch(format, setup.job().numSms()).synchronous();
    }

    /** Combine of rows in the buffer's combine memory, else of staged ones. */
    public RankTeam.Work combine(boolean zeroCopy, CombineRows rows) {
        return operations.combine(zeroCopy, rows, setup.job().numSms()).synchronous();
    }

    /** Bytes of a dispatch. */
    public OperationBytes dispatchBytes(LowLatencyFormat format) {
        return new LowLatencyBytes(setup.session().job()).dispatch(format);
    }

    /** Bytes of a combine. */
    public OperationBytes combineBytes(CombineRows rows) {
        return new LowLatencyBytes(setup.session().job()).combine(rows);
    }

    @Override
    public void close() {
        setup.close();
    }
}
