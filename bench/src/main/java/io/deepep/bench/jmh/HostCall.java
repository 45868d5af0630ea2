package io.deepep.bench.jmh;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyFormat;
import io.deepep.bench.lowlatency.CombineRows;
import io.deepep.bench.lowlatency.LowLatencyOperations;
import io.deepep.bench.measure.MeasuredCall;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.normal.CombineSource;
import io.deepep.bench.normal.NormalOperations;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.RankTeam;

/** What ranks of the host backend call together. */
public enum HostCall {
    /** Normal dispatch with top-k, received as a view. */
    DISPATCH,
    /** Normal dispatch of FP8. */
    DISPATCH_FP8,
    /** Normal dispatch by handle. */
    DISPATCH_CACHED,
    /** Normal combine of rows that are staged first. */
    COMBINE_STAGED,
    /** Normal combine of rows that lie in the buffer. */
    COMBINE_ZERO_COPY,
    /** Low-latency dispatch of BF16. */
    LL_DISPATCH,
    /** Low-latency dispatch with the cast to FP8. */
    LL_DISPATCH_FP8,
    /** The same with scales that are powers of two. */
    LL_DISPATCH_FP8_UE8M0,
    /** Low-latency combine of rows that are staged first. */
    LL_COMBINE_STAGED,
    /** Low-latency combine of rows that lie in the buffer. */
    LL_COMBINE_ZERO_COPY,
    /** Low-latency combine with the cast to FP8. */
    LL_COMBINE_FP8,
    /** Low-latency combine with 10-bit logarithms. */
    LL_COMBINE_LOGFMT;

    /**
     * A call that can be made.
     *
     * @param buffers of the ranks, open and verified; to be closed
     * @param movedBytes that it reads and writes
     */
    record Ready(AutoCloseable buffers, RankTeam team, MeasuredCall call, long movedBytes) {}

    /** Opens buffers for {@code job}, verifies them, and prepares the call. */
    Ready open(Job job) {
        if (name().startsWith("LL")) {
            LowLatencyOperations operations = LowLatencyOperations.open(job, RankSource::inProcess);
            return ready(operations, operations.team(), lowLatency(operations, job.numSms()));
        }
        NormalOperations operations = NormalOperations.open(job, RankSource::inProcess);
        return ready(operations, operations.team(), normal(operations, job.numSms()));
    }

    private Ready ready(AutoCloseable buffers, RankTeam team, MeasuredCall call) {
        OperationBytes bytes = call.total();
        long moved =
                switch (this) {
                    // Every received row is read at its source and written.
                    case DISPATCH, DISPATCH_FP8, DISPATCH_CACHED -> 2 * bytes.logical();
                    // As in place, and every row is first copied into the buffer.
                    case COMBINE_STAGED -> bytes.moved() + 2 * bytes.logical();
                    // Every row is read once, every sum written.
                    default -> bytes.moved();
                };
        return new Ready(buffers, team, call, moved);
    }

    private MeasuredCall normal(NormalOperations of, int sms) {
        return switch (this) {
            case DISPATCH -> of.dispatch(DType.BF16, sms);
            case DISPATCH_FP8 -> of.dispatch(DType.FP8_E4M3, sms);
            case DISPATCH_CACHED -> of.cachedDispatch(DType.BF16, sms);
            case COMBINE_STAGED -> of.combine(CombineSource.ELSEWHERE, CombineFormat.BF16, sms);
            case COMBINE_ZERO_COPY -> of.combine(CombineSource.BUFFER, CombineFormat.BF16, sms);
            default -> throw new IllegalStateException(this + " is not normal mode");
        };
    }

    private MeasuredCall lowLatency(LowLatencyOperations of, int sms) {
        return switch (this) {
            case LL_DISPATCH -> of.dispatch(LowLatencyFormat.BF16, sms);
            case LL_DISPATCH_FP8 -> of.dispatch(LowLatencyFormat.FP8, sms);
            case LL_DISPATCH_FP8_UE8M0 -> of.dispatch(LowLatencyFormat.FP8_UE8M0, sms);
            case LL_COMBINE_STAGED -> of.combine(false, CombineRows.BF16, sms);
            case LL_COMBINE_ZERO_COPY -> of.combine(true, CombineRows.BF16, sms);
            case LL_COMBINE_FP8 -> of.combine(false, CombineRows.FP8, sms);
            case LL_COMBINE_LOGFMT -> of.combine(false, CombineRows.LOGFMT, sms);
            default -> throw new IllegalStateException(this + " is not low-latency mode");
        };
    }
}
