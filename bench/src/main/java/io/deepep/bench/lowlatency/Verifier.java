package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.bench.run.Rows;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;

/**
 * Holds results of one workload against the oracle. The oracle's own cast to FP8 is slow, so a
 * result with the same bits as one that the oracle has accepted is accepted too; any other one goes
 * to the oracle.
 */
final class Verifier {
    /** The most that LogFMT with 10 bits may be off, relative to each summand. */
    private static final double LOGFMT_RELATIVE = 0.0225;

    /** What LogFMT may be off where numbers lie far below the largest of their block. */
    private static final double LOGFMT_ABSOLUTE = 1e-6;

    private record Key(int rank, Object what) {}

    private final LowLatencyWorkload workload;
    private final Map<Key, Long> accepted = new ConcurrentHashMap<>();

    Verifier(LowLatencyWorkload workload) {
        this.workload = workload;
    }

    LowLatencyWorkload workload() {
        return workload;
    }

    /** Compares what {@code rank} received. */
    void dispatched(int rank, LowLatencyFormat format, LowLatencyDispatchResult result) {
        Key key = new Key(rank, format);
        // An oracle's count that differs would make the fingerprint read undefined rows, so counts
        // come first.
        long bits =
                Arrays.equals(counts(result), workload.oracle().counts(rank))
                        ? fingerprint(result)
                        : -1;
        Long known = accepted.get(key);
        if (known == null || known != bits) {
            workload.check(format).checkDispatch(rank, result, UnaryOperator.identity());
            accepted.put(key, bits);
        }
    }

    /** Compares what came home to {@code rank}. */
    void combined(int rank, boolean logFmt, Tensor actual) {
        Key key = new Key(rank, logFmt);
        long bits = 31 * Rows.fingerprint(actual, actual.size(0)) + actual.toString().hashCode();
        Long known = accepted.get(key);
        if (known == null || known != bits) {
            workload.check(LowLatencyFormat.BF16)
                    .checkCombine(
                            rank,
                            workload.outputs(),
                            logFmt ? LOGFMT_RELATIVE : 0,
                            logFmt ? LOGFMT_ABSOLUTE : 0,
                            actual);
            accepted.put(key, bits);
        }
    }

    private static int[] counts(LowLatencyDispatchResult result) {
        int[] counts = new int[(int) result.recvCount().size(0)];
        for (int expert = 0; expert < counts.length; expert++) {
            counts[expert] = (int) result.recvCount().getLong(expert);
        }
        return counts;
    }

    /** All that the oracle looks at: shapes, received rows, scales, sources and ranges. */
    private static long fingerprint(LowLatencyDispatchResult result) {
        long hash = result.recvX().toString().hashCode();
        hash = 31 * hash + String.valueOf(result.recvScales()).hashCode();
        int[] counts = counts(result);
        for (int expert = 0; expert < counts.length; expert++) {
            hash = 31 * hash + Rows.fingerprint(result.recvX().select(0, expert), counts[expert]);
            for (int row = 0; row < counts[expert]; row++) {
                hash = 31 * hash + result.handle().srcInfo().getLong(expert, row);
            }
            if (result.recvScales() != null) {
                hash = 31 * hash + scales(result.recvScales().select(0, expert), counts[expert]);
            }
        }
        Tensor range = result.handle().layoutRange();
        for (int expert = 0; expert < range.size(0); expert++) {
            for (int src = 0; src < range.size(1); src++) {
                long packed = range.getLong(expert, src);
                hash = 31 * hash + (packed >>> 32 == 0 ? 0 : packed);
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
