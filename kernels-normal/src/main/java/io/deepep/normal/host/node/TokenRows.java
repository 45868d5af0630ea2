package io.deepep.normal.host.node;

import io.deepep.DispatchPlan;
import io.deepep.Tensor;
import io.deepep.spi.RowFormat;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A dispatch's tokens as rows to write. */
public final class TokenRows {
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private final RowFormat format;
    private final MemorySegment x;
    private final long xStride;
    private final MemorySegment scales;
    private final long scaleStride0;
    private final long scaleStride1;

    public TokenRows(DispatchPlan plan) {
        Tensor tokens = plan.x();
        format = new RowFormat(tokens.dtype(), (int) tokens.size(1));
        x = tokens.segment();
        xStride = tokens.stride(0) * tokens.dtype().sizeBytes();
        Tensor scale = plan.scales();
        scales = scale == null ? null : scale.segment();
        scaleStride0 = scale == null ? 0 : FLOAT.byteSize() * scale.stride(0);
        scaleStride1 = scale == null ? 0 : FLOAT.byteSize() * scale.stride(1);
    }

    public RowFormat format() {
        return format;
    }

    /** Writes the elements of {@code token}, then its scales. */
    public void write(int token, MemorySegment target, long offset) {
        MemorySegment.copy(x, token * xStride, target, offset, format.elementBytes());
        if (scales == null) {
            return;
        }
        long from = token * scaleStride0;
        long to = offset + format.elementBytes();
        if (scaleStride1 == FLOAT.byteSize()) {
            MemorySegment.copy(scales, from, target, to, format.scaleBytes());
            return;
        }
        for (int i = 0; i < format.numScales(); i++) {
            float scale = scales.get(FLOAT, from + i * scaleStride1);
            target.set(FLOAT, to + FLOAT.byteSize() * i, scale);
        }
    }
}
