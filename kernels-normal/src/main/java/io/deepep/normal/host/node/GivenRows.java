package io.deepep.normal.host.node;

import io.deepep.Tensor;
import io.deepep.spi.RowFormat;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Rows that a call is given, with their scales if they have some, as rows to write. */
public final class GivenRows {
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    public final RowFormat format;
    private final MemorySegment x;
    private final long xStride;
    private final MemorySegment scales;
    private final long scaleStride0;
    private final long scaleStride1;

    /**
     * Rows in the caller's memory.
     *
     * @param scale null for BF16
     */
    public GivenRows(Tensor rows, Tensor scale) {
        format = new RowFormat(rows.dtype(), (int) rows.size(1));
        x = rows.segment();
        xStride = rows.stride(0) * rows.dtype().sizeBytes();
        scales = scale == null ? null : scale.segment();
        scaleStride0 = scale == null ? 0 : FLOAT.byteSize() * scale.stride(0);
        scaleStride1 = scale == null ? 0 : FLOAT.byteSize() * scale.stride(1);
    }

    /** Writes the elements of {@code row}, then its scales. */
    public void write(int row, MemorySegment target, long offset) {
        MemorySegment.copy(x, row * xStride, target, offset, format.elementBytes());
        if (scales == null) {
            return;
        }
        long from = row * scaleStride0;
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
