package io.deepep.normal.host.node;

import io.deepep.DType;
import io.deepep.host.HostMemory;
import io.deepep.host.RowMath;
import io.deepep.host.RowSum;
import io.deepep.spi.RowFormat;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The rows of a combine as they lie in symmetric memory. Serves one thread. */
public final class SentRows {
    public final RowFormat format;
    private final boolean fp8;

    /** A sum before it is cast, or null. */
    private final MemorySegment rounded;

    public SentRows(RowFormat format) {
        this.format = format;
        fp8 = format.dtype() == DType.FP8_E4M3;
        rounded = fp8 ? HostMemory.allocate(Arena.ofAuto(), 2L * format.hidden()) : null;
    }

    /** Puts a row of BF16 to {@code at}. */
    public void put(MemorySegment bf16, long from, MemorySegment target, long at) {
        if (fp8) {
            long scales = at + format.elementBytes();
            RowMath.castFp8(bf16, from, target, at, target, scales, format.hidden(), false);
        } else {
            MemorySegment.copy(bf16, from, target, at, format.elementBytes());
        }
    }

    /** Puts a sum, rounded to BF16, to {@code at}. */
    public void put(RowSum sum, MemorySegment target, long at) {
        if (fp8) {
            sum.store(rounded, 0, format.hidden());
            put(rounded, 0, target, at);
        } else {
            sum.store(target, at, format.hidden());
        }
    }

    /** Adds the row at {@code at} to a sum. */
    public void add(RowSum sum, MemorySegment memory, long at) {
        if (fp8) {
            sum.addFp8(memory, at);
        } else {
            sum.add(memory, at);
        }
    }
}
