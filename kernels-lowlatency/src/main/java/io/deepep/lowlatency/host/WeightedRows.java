package io.deepep.lowlatency.host;

import io.deepep.LowLatencyLimits;
import io.deepep.host.HostMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What a combine that sums before it sends reads of a dispatch with weights: where the rows of each
 * received token lie, and what they weigh. Selection k of a row that is none of this rank's has no
 * place. Memory costs only the pages that are used.
 */
final class WeightedRows {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final long NOWHERE = -1;

    private final int maxTokens;
    private final int maxTopk;

    /** [R][maxTokens] */
    private final MemorySegment tokens;

    /** [R][maxTokens][maxTopk] {@code expert << 32 | row}, or {@link #NOWHERE}. */
    private final MemorySegment places;

    /** [R][maxTokens][maxTopk] */
    private final MemorySegment weights;

    WeightedRows(Arena arena, LowLatencyLimits limits, int numRanks) {
        this.maxTokens = limits.maxTokens();
        this.maxTopk = limits.maxTopk();
        long numRows = (long) numRanks * maxTokens;
        tokens = HostMemory.allocate(arena, Integer.BYTES * numRows);
        places = HostMemory.allocate(arena, Long.BYTES * numRows * maxTopk);
        weights = HostMemory.allocate(arena, Float.BYTES * numRows * maxTopk);
    }

    private long row(int source, long i) {
        return (long) source * maxTokens + i;
    }

    private long selection(int source, long i, int k) {
        return row(source, i) * maxTopk + k;
    }

    /** Notes which token the i-th row of a source is. */
    void setToken(int source, long i, int token) {
        tokens.set(INT, Integer.BYTES * row(source, i), token);
    }

    /** Notes selection k of a row; {@code expert} is -1 where it is none of this rank's. */
    void setSelection(int source, long i, int k, int expert, int row, float weight) {
        long at = selection(source, i, k);
        places.set(LONG, Long.BYTES * at, expert < 0 ? NOWHERE : (long) expert << 32 | row);
        weights.set(FLOAT, Float.BYTES * at, weight);
    }

    int token(int source, long i) {
        return tokens.get(INT, Integer.BYTES * row(source, i));
    }

    boolean isHere(int source, long i, int k) {
        return places.get(LONG, Long.BYTES * selection(source, i, k)) != NOWHERE;
    }

    int expert(int source, long i, int k) {
        return (int) (places.get(LONG, Long.BYTES * selection(source, i, k)) >> 32);
    }

    /** The expert's row. */
    int row(int source, long i, int k) {
        return (int) places.get(LONG, Long.BYTES * selection(source, i, k));
    }

    float weight(int source, long i, int k) {
        return weights.get(FLOAT, Float.BYTES * selection(source, i, k));
    }
}
