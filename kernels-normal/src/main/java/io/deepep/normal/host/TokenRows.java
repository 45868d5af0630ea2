package io.deepep.normal.host;

import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.Fp8E4m3;
import io.deepep.Tensor;
import io.deepep.normal.NormalNvlLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A dispatch's inputs as rows to write: elements and scales, and what travels beside them. */
final class TokenRows {
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final MemorySegment x;
    private final long rowStride;
    private final long elementBytes;
    private final MemorySegment scales;
    private final int numScales;
    private final long scaleStride0;
    private final long scaleStride1;
    private final MemorySegment topkIdx;
    private final MemorySegment topkWeights;
    private final int numTopk;
    private final MemorySegment meta;

    TokenRows(DispatchPlan plan) {
        Tensor tokens = plan.x();
        long elementSize = tokens.dtype().sizeBytes();
        x = tokens.segment();
        rowStride = tokens.stride(0) * elementSize;
        elementBytes = tokens.size(1) * elementSize;
        Tensor scale = plan.scales();
        scales = scale == null ? null : scale.segment();
        numScales =
                tokens.dtype() == DType.FP8_E4M3
                        ? (int) tokens.size(1) / Fp8E4m3.CHANNELS_PER_SCALE
                        : 0;
        scaleStride0 = scale == null ? 0 : 4 * scale.stride(0);
        scaleStride1 = scale == null ? 0 : 4 * scale.stride(1);
        topkIdx = plan.topkIdx() == null ? null : plan.topkIdx().segment();
        topkWeights = plan.topkWeights() == null ? null : plan.topkWeights().segment();
        numTopk = plan.topkIdx() == null ? 0 : (int) plan.topkIdx().size(1);
        meta = Arena.ofAuto().allocate(NormalNvlLayout.metaBytes(numTopk), 8);
    }

    /** Writes the elements of {@code token}, then its scales. */
    void writeRow(int token, MemorySegment target, long offset) {
        MemorySegment.copy(x, token * rowStride, target, offset, elementBytes);
        long from = token * scaleStride0;
        if (scaleStride1 == FLOAT.byteSize()) {
            MemorySegment.copy(scales, from, target, offset + elementBytes, 4L * numScales);
            return;
        }
        for (int i = 0; i < numScales; i++) {
            target.set(
                    FLOAT,
                    offset + elementBytes + 4L * i,
                    scales.get(FLOAT, from + i * scaleStride1));
        }
    }

    /** Gathers what {@link #writeMeta} writes for {@code token}. */
    void prepareMeta(int token) {
        meta.set(INT, 0, token);
        long first = (long) token * numTopk;
        for (int k = 0; k < numTopk; k++) {
            meta.set(
                    INT,
                    4 + 4L * k,
                    (int) topkIdx.get(ValueLayout.JAVA_LONG_UNALIGNED, 8 * (first + k)));
        }
        if (topkWeights != null) {
            MemorySegment.copy(topkWeights, 4 * first, meta, 4 + 4L * numTopk, 4L * numTopk);
        }
    }

    /** Writes the source index, expert indices and weights of the token last prepared. */
    void writeMeta(MemorySegment target, long offset) {
        MemorySegment.copy(meta, 0, target, offset, meta.byteSize());
    }
}
