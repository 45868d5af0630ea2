package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** Columns of one matrix may be given as different tensors; what shares an element may not. */
class MemoryRangeProperties {
    private static final MemorySegment MEMORY = Arena.ofAuto().allocate(4096, 128);

    private static Tensor columns(DType dtype, int first, int rows, int columns, int pitchBytes) {
        long[] strides = {pitchBytes / dtype.sizeBytes(), 1};
        return Tensor.strided(MEMORY.asSlice(first), dtype, new long[] {rows, columns}, strides);
    }

    private static Set<Long> bytes(Tensor tensor) {
        Set<Long> bytes = new HashSet<>();
        for (long i = 0; i < tensor.size(0); i++) {
            for (long j = 0; j < tensor.size(1); j++) {
                for (int b = 0; b < tensor.dtype().sizeBytes(); b++) {
                    bytes.add(tensor.address() + tensor.offsetBytes(i, j) + b);
                }
            }
        }
        return bytes;
    }

    @Property(tries = 2000)
    void whatSharesAnElementOverlaps(
            @ForAll @IntRange(max = 40) int firstA,
            @ForAll @IntRange(max = 40) int firstB,
            @ForAll @IntRange(min = 1, max = 3) int rowsA,
            @ForAll @IntRange(min = 1, max = 3) int rowsB,
            @ForAll @IntRange(min = 1, max = 6) int columnsA,
            @ForAll @IntRange(min = 1, max = 6) int columnsB,
            @ForAll @IntRange(max = 4) int vectorsA,
            @ForAll boolean samePitch) {
        int pitchA = 8 * vectorsA;
        Tensor a = columns(DType.F32, 4 * firstA, rowsA, columnsA, pitchA);
        Tensor b = columns(DType.BF16, 2 * firstB, rowsB, columnsB, samePitch ? pitchA : 24);
        Set<Long> shared = bytes(a);
        shared.retainAll(bytes(b));
        boolean overlap = MemoryRange.overlap(a, b);
        assertThat(overlap).isEqualTo(MemoryRange.overlap(b, a));
        if (!shared.isEmpty()) {
            assertThat(overlap).isTrue();
        }
        // Exact for columns of the same matrix, of which neither goes on into the next row.
        int inRow = pitchA == 0 ? 0 : Math.floorMod(2 * firstB - 4 * firstA, pitchA);
        if (samePitch && pitchA > 0 && 4 * columnsA <= inRow && inRow + 2 * columnsB <= pitchA) {
            assertThat(overlap).isFalse();
        }
    }
}
