package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.bench.measure.Accepted;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.Rows;
import java.util.Arrays;

/** Holds results of one workload against the oracle, whose own cast to FP8 is slow. */
final class Verifier {
    private final LowLatencyWorkload workload;
    private final Accepted accepted = new Accepted();

    Verifier(LowLatencyWorkload workload) {
        this.workload = workload;
    }

    LowLatencyWorkload workload() {
        return workload;
    }

    /** Compares what {@code rank} received, on that rank's thread. */
    void dispatched(int rank, LowLatencyFormat format, LowLatencyDispatchResult result) {
        try (Downloads downloads = workload.downloads(rank)) {
            // An oracle's count that differs would make the fingerprint read undefined rows, so
            // counts come first.
            int[] counts = counts(downloads.apply(result.recvCount()));
            long bits =
                    Arrays.equals(counts, workload.world().oracle().counts(rank))
                            ? fingerprint(result, counts, downloads)
                            : -1;
            accepted.accept(
                    rank,
                    format,
                    bits,
                    () -> workload.world().check(format).checkDispatch(rank, result, downloads));
        }
    }

    /** Compares what {@code rank} got back, on that rank's thread. */
    void combined(int rank, CombineRows home, Tensor result) {
        try (Downloads downloads = workload.downloads(rank)) {
            Tensor actual = downloads.apply(result);
            accepted.accept(
                    rank,
                    home,
                    31 * Rows.fingerprint(actual, actual.size(0)) + actual.toString().hashCode(),
                    () ->
                            workload.world()
                                    .checkCombine(rank, home.format(), home.preReduced(), actual));
        }
    }

    private static int[] counts(Tensor recvCount) {
        int[] counts = new int[(int) recvCount.size(0)];
        for (int expert = 0; expert < counts.length; expert++) {
            counts[expert] = (int) recvCount.getLong(expert);
        }
        return counts;
    }

    /** All that the oracle looks at: shapes, received rows, scales, sources and ranges. */
    private static long fingerprint(
            LowLatencyDispatchResult result, int[] counts, Downloads downloads) {
        long hash = result.recvX().toString().hashCode();
        hash = 31 * hash + String.valueOf(result.recvScales()).hashCode();
        Tensor srcInfo = downloads.apply(result.handle().srcInfo());
        Tensor scales = result.recvScales() == null ? null : downloads.apply(result.recvScales());
        for (int expert = 0; expert < counts.length; expert++) {
            // The rows that arrived are few among those that there is room for.
            Tensor rows = result.recvX().select(0, expert).slice(0, 0, counts[expert]);
            hash = 31 * hash + Rows.fingerprint(downloads.apply(rows), counts[expert]);
            for (int row = 0; row < counts[expert]; row++) {
                hash = 31 * hash + srcInfo.getLong(expert, row);
            }
            if (scales != null) {
                hash = 31 * hash + scales(scales.select(0, expert), counts[expert]);
            }
        }
        Tensor range = downloads.apply(result.handle().layoutRange());
        for (int expert = 0; expert < range.size(0); expert++) {
            for (int src = 0; src < range.size(1); src++) {
                long packed = range.getLong(expert, src);
                hash = 31 * hash + (LowLatencyHandle.rangeCount(packed) == 0 ? 0 : packed);
            }
        }
        return hash;
    }

    private static long scales(Tensor scales, int rows) {
        long hash = 1;
        for (int row = 0; row < rows; row++) {
            for (int group = 0; group < scales.size(1); group++) {
                hash = 31 * hash + scales.getLong(row, group);
            }
        }
        return hash;
    }
}
