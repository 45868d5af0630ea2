package io.deepep.bench.normal;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.RankTeam;
import java.util.Map;
import java.util.function.IntFunction;

/**
 * Ranks with everything that normal-mode operations need, for benchmarks. Every operation reuses
 * its plans.
 */
public final class NormalFixture implements AutoCloseable {
    private final NormalSetup setup;
    private final NormalOperations operations;

    private NormalFixture(NormalSetup setup) {
        this.setup = setup;
        this.operations = new NormalOperations(setup);
    }

    /**
     * Opens the buffers and verifies dispatch and combine once.
     *
     * @throws AssertionError if a result is wrong
     */
    public static NormalFixture open(Job job) {
        return open(job, RankSource::inProcess);
    }

    /** {@link #open(Job)} with ranks of one's own. */
    public static NormalFixture open(Job job, IntFunction<RankSource> ranks) {
        NormalSetup setup = NormalSetup.open(job, Map.of(), ranks);
        NormalBench.cases(setup).forEach(each -> each.run());
        return new NormalFixture(setup);
    }

    /** The rank threads. */
    public RankTeam team() {
        return setup.session().team();
    }

    /** Dispatch with top-k. */
    public RankTeam.Work dispatch(DType dtype) {
        return operations.dispatch(dtype, dispatchSms()).synchronous();
    }

    /** Dispatch with the routing of an earlier one. */
    public RankTeam.Work cachedDispatch() {
        return operations.cachedDispatch(DType.BF16, dispatchSms()).synchronous();
    }

    /** Combine of rows in the buffer's combine memory, else of staged ones. */
    public RankTeam.Work combine(boolean inBuffer) {
        return operations
                .combine(
                        inBuffer ? CombineSource.BUFFER : CombineSource.ELSEWHERE,
                        CombineFormat.BF16,
                        setup.session().job().combineConfig().numSms())
                .synchronous();
    }

    private int dispatchSms() {
        return setup.session().job().dispatchConfig().numSms();
    }

    /** Bytes of a dispatch; of BF16 rows, also of a combine. */
    public OperationBytes bytes(DType dtype) {
        return new NormalBytes(setup.session().job()).dispatch(dtype);
    }

    @Override
    public void close() {
        setup.close();
    }
}
