package io.deepep.normal;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/** The combine region of a rank's heap as tensors that an engine writes rows into. */
public final class CombineRegion {
    private final Region region;
    private final Memory memory;

    /** Makes tensors of the rank's heap. */
    @FunctionalInterface
    public interface Memory {
        /** A view that begins at {@code offset} and may use {@code numBytes}. */
        Tensor view(long offset, long numBytes, DType dtype, long[] shape, long[] strides);
    }

    public CombineRegion(NormalNvlLayout layout, Memory memory) {
        this.region = layout.combineRows();
        this.memory = memory;
    }

    /** Rows of BF16 for a handle whose result has so many. */
    public Tensor bf16(DispatchHandle handle, int numRows) {
        NormalChecks.combineBuffer(handle, CombineFormat.BF16);
        RowFormat format = RowFormat.bf16(handle.hidden());
        return view(format, 0, DType.BF16, numRows, format.hidden());
    }

    /** The same of FP8 with their scales. */
    public ScaledRows fp8(DispatchHandle handle, int numRows) {
        NormalChecks.combineBuffer(handle, CombineFormat.FP8);
        RowFormat format = RowFormat.fp8(handle.hidden());
        return new ScaledRows(
                view(format, 0, DType.FP8_E4M3, numRows, format.hidden()),
                view(format, format.elementBytes(), DType.F32, numRows, format.numScales()));
    }

    /** A part of each row, {@code from} bytes from where the row begins. */
    private Tensor view(RowFormat format, long from, DType dtype, int numRows, int columns) {
        return memory.view(
                region.offset() + from,
                region.sizeBytes() - from,
                dtype,
                new long[] {numRows, columns},
                new long[] {format.strideBytes() / dtype.sizeBytes(), 1});
    }
}
