package io.deepep.testkit.oracle;

import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.routing.Tokens;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** Bit-for-bit comparison of rows and shapes. */
final class RowBits {
    private RowBits() {}

    static void requireShape(Tensor tensor, String name, DType dtype, long... shape) {
        if (tensor == null || tensor.dtype() != dtype || !Arrays.equals(tensor.shape(), shape)) {
            throw new OracleMismatch(
                    name + ": expected " + dtype + Arrays.toString(shape) + ", saw " + tensor);
        }
    }

    /**
     * The matrix row {@code row} of {@code actual} must have the bits of row {@code from} of {@code
     * expected}; both have contiguous rows.
     */
    static void requireRow(Tensor expected, long from, Tensor actual, long row, String what) {
        long bytes = expected.size(1) * expected.dtype().sizeBytes();
        MemorySegment wanted = expected.segment().asSlice(expected.offsetBytes(from, 0), bytes);
        MemorySegment seen = actual.segment().asSlice(actual.offsetBytes(row, 0), bytes);
        long difference = wanted.mismatch(seen);
        if (difference >= 0) {
            long channel = difference / expected.dtype().sizeBytes();
            throw new OracleMismatch(
                    "%s, channel %s: expected bits 0x%x, saw 0x%x; the row begins %s"
                            .formatted(
                                    what,
                                    channel,
                                    expected.getLong(from, channel),
                                    actual.getLong(row, channel),
                                    Tokens.describe(beginning(actual, row))));
        }
    }

    /** I32 numbers in one dimension. */
    static void requireInts(int[] expected, Tensor actual, String what) {
        requireShape(actual, what, DType.I32, expected.length);
        for (int i = 0; i < expected.length; i++) {
            OracleMismatch.requireEqual(
                    what + "[" + i + "]", (long) expected[i], actual.getLong(i));
        }
    }

    static void requireZero(Tensor actual, long row, String what) {
        for (long h = 0; h < actual.size(1); h++) {
            OracleMismatch.require(
                    actual.getLong(row, h) == 0,
                    what + ", channel " + h + " of a padding row",
                    0,
                    actual.getFloat(row, h));
        }
    }

    private static int[] beginning(Tensor actual, long row) {
        int[] mark = new int[Tokens.MARK_ELEMENTS];
        for (int i = 0; i < mark.length; i++) {
            mark[i] =
                    actual.dtype() == DType.FP8_E4M3
                            ? (int) actual.getLong(row, i)
                            : (int) actual.getFloat(row, i);
        }
        return mark;
    }
}
