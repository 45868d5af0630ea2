package io.deepep.lowlatency;

import io.deepep.Fp8E4m3;
import io.deepep.host.RowMath;
import java.lang.foreign.MemorySegment;

/**
 * A row of a combine in FP8, in parts of {@link LowLatencyLayout#PART_CHANNELS}, each of which has
 * a flag of its own and crosses a network by itself, its scales with it.
 *
 * <pre>
 *   part   f32 scale[channels / 128], padded to {@link #SCALE_BYTES}
 *          E4M3 code[channels]
 * </pre>
 *
 * The cast is that of a dispatch in FP8, see {@link RowMath#castFp8}.
 */
public final class Fp8Parts {
    private static final int VECTOR_BYTES = 16;

    /** Before the codes of a part. */
    public static final int SCALE_BYTES =
            Math.ceilDiv(
                            LowLatencyLayout.PART_CHANNELS
                                    / Fp8E4m3.CHANNELS_PER_SCALE
                                    * Float.BYTES,
                            VECTOR_BYTES)
                    * VECTOR_BYTES;

    /** From a part to the next. */
    public static final int PART_BYTES = SCALE_BYTES + LowLatencyLayout.PART_CHANNELS;

    private Fp8Parts() {}

    /** Bytes of a row. */
    public static long rowBytes(int hidden) {
        return hidden + (long) SCALE_BYTES * Math.ceilDiv(hidden, LowLatencyLayout.PART_CHANNELS);
    }

    private static long partAt(long row, int channel) {
        return row + (long) channel / LowLatencyLayout.PART_CHANNELS * PART_BYTES;
    }

    private static int channels(int channel, int hidden) {
        return Math.min(LowLatencyLayout.PART_CHANNELS, hidden - channel);
    }

    /** Casts a row of BF16. */
    public static void encodeRow(
            MemorySegment bf16, long from, MemorySegment to, long at, int hidden) {
        for (int c = 0; c < hidden; c += LowLatencyLayout.PART_CHANNELS) {
            long part = partAt(at, c);
            RowMath.castFp8(
                    bf16,
                    from + 2L * c,
                    to,
                    part + SCALE_BYTES,
                    to,
                    part,
                    channels(c, hidden),
                    false);
        }
    }

    /** Adds a row times its weight; see {@link RowMath#addScaledFp8}. */
    public static void addScaledRow(
            float[] acc, float weight, MemorySegment from, long at, int hidden) {
        for (int c = 0; c < hidden; c += LowLatencyLayout.PART_CHANNELS) {
            long part = partAt(at, c);
            RowMath.addScaledFp8(
                    acc, c, weight, from, part + SCALE_BYTES, part, channels(c, hidden));
        }
    }
}
