package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyFormat;
import io.deepep.Ue8m0;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.run.Job;
import io.deepep.lowlatency.LogFmt10;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.testkit.oracle.Traffic;
import java.util.Arrays;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/**
 * Bytes of low-latency operations. A token goes once to each destination rank; on the way back
 * every selection's row is sent by itself, or pre-reduced one row from each of these ranks.
 */
final class LowLatencyBytes {
    private final Job job;
    private final int[][] tokensPerRank;
    private final int[][] selectionsPerRank;

    LowLatencyBytes(Job job) {
        this.job = job;
        this.tokensPerRank = job.routing().tokensPerRank();
        this.selectionsPerRank = job.routing().selectionsPerRank();
    }

    /** Bytes of a dispatched row as it travels; scales of every FP8 format are F32 then. */
    long rowBytes(LowLatencyFormat format) {
        return LowLatencyLayout.rows(format, job.hidden()).dataBytes();
    }

    /** Bytes of a row as the engine gets it: the codes of UE8M0 scales are packed. */
    private long receivedRowBytes(LowLatencyFormat format) {
        int numScales = LowLatencyLayout.rows(format, job.hidden()).numScales();
        return format == LowLatencyFormat.FP8_UE8M0
                ? job.hidden() + (long) Integer.BYTES * Ue8m0.packedSize(numScales)
                : rowBytes(format);
    }

    /** Bytes of a row as it travels in a combine. */
    long combineRowBytes(CombineRows home) {
        return switch (home.format()) {
            case BF16 -> rowBytes(LowLatencyFormat.BF16);
            case FP8 -> rowBytes(LowLatencyFormat.FP8);
            case LOGFMT -> LogFmt10.rowBytes(job.hidden());
        };
    }

    /**
     * Bytes of a dispatched row as GPUs send it: elements, scales and a flag that says what it is
     * for; whole vectors, as a bare copy moves them.
     */
    long dispatchWireRowBytes(LowLatencyFormat format) {
        return LowLatencyLayout.dispatchedBytes(
                LowLatencyLayout.rows(format, job.hidden()), job.routing().numTopk());
    }

    /** Rows of a dispatch between the busiest GPU's ranks and all others, one way. */
    long busiestLinkRows() {
        return job.placement().busiestRows(tokensPerRank);
    }

    /** The same of a combine. */
    long busiestLinkRows(CombineRows home) {
        return job.placement().busiestRows(rowsHome(home));
    }

    /** For each rank, how many rows come home to it from each rank. */
    private int[][] rowsHome(CombineRows home) {
        return home.preReduced() ? tokensPerRank : selectionsPerRank;
    }

    /** What {@code rank}'s tokens send in a dispatch, in rows. */
    Traffic dispatchTraffic(int rank) {
        return Traffic.direct(job.topology(), rank, tokensPerRank[rank]);
    }

    /** Rows that go home to {@code rank}: one for each selection elsewhere, or for each rank. */
    Traffic combineTraffic(int rank, CombineRows home) {
        return Traffic.direct(job.topology(), rank, rowsHome(home)[rank]);
    }

    /**
     * All ranks' bytes of a dispatch: BF16 tokens are read, rows of {@code format} are received.
     */
    OperationBytes dispatch(LowLatencyFormat format) {
        long received = selections() * receivedRowBytes(format);
        return total(
                this::dispatchTraffic, rowBytes(format), tokens() * 2L * job.hidden() + received);
    }

    /** All ranks' bytes of a combine: BF16 rows are read, BF16 tokens are written. */
    OperationBytes combine(CombineRows home) {
        return total(
                rank -> combineTraffic(rank, home),
                combineRowBytes(home),
                (tokens() + selections()) * 2L * job.hidden());
    }

    private OperationBytes total(IntFunction<Traffic> ofRank, long row, long moved) {
        Traffic all =
                IntStream.range(0, job.numRanks())
                        .mapToObj(ofRank)
                        .reduce(new Traffic(0, 0), Traffic::plus);
        return new OperationBytes(
                selections() * row, all.nvlinkRows() * row, all.rdmaRows() * row, moved);
    }

    private long tokens() {
        return IntStream.range(0, job.numRanks()).mapToLong(job.routing()::numTokens).sum();
    }

    private long selections() {
        return Arrays.stream(selectionsPerRank).flatMapToInt(Arrays::stream).asLongStream().sum();
    }
}
