package io.deepep.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** Pieces never overlap, and what comes back becomes whole again. */
class FreeRangesProperties {
    private static final int NUM_BYTES = 100;

    private record Piece(long offset, int size) {}

    /** Positive steps take so much; negative ones give back one of the pieces. */
    @Property
    void piecesAreDisjointAndReturn(
            @ForAll @Size(max = 60) List<@IntRange(min = -20, max = 40) Integer> steps) {
        FreeRanges ranges = new FreeRanges(NUM_BYTES);
        BitSet used = new BitSet();
        List<Piece> pieces = new ArrayList<>();
        for (int step : steps) {
            if (step > 0) {
                long offset = ranges.take(step);
                assertThat(offset >= 0).isEqualTo(hasGap(used, step));
                if (offset >= 0) {
                    assertThat(used.get((int) offset, (int) offset + step).isEmpty()).isTrue();
                    used.set((int) offset, (int) offset + step);
                    pieces.add(new Piece(offset, step));
                }
            } else if (!pieces.isEmpty()) {
                giveBack(ranges, used, pieces.remove(-step % pieces.size()));
            }
            assertThat(ranges.isWhole()).isEqualTo(used.isEmpty());
        }
        while (!pieces.isEmpty()) {
            giveBack(ranges, used, pieces.removeLast());
        }
        assertThat(ranges.isWhole()).isTrue();
        assertThat(ranges.take(NUM_BYTES)).isZero();
    }

    private static void giveBack(FreeRanges ranges, BitSet used, Piece piece) {
        ranges.giveBack(piece.offset(), piece.size());
        used.clear((int) piece.offset(), (int) piece.offset() + piece.size());
    }

    private static boolean hasGap(BitSet used, int size) {
        for (int i = used.nextClearBit(0); i < NUM_BYTES; i = used.nextClearBit(i)) {
            int end = used.nextSetBit(i);
            if ((end < 0 ? NUM_BYTES : end) - i >= size) {
                return true;
            }
            i = end < 0 ? NUM_BYTES : end;
        }
        return false;
    }

    @Example
    void lowestFirst() {
        FreeRanges ranges = new FreeRanges(10);
        assertThat(ranges.take(4)).isZero();
        assertThat(ranges.take(4)).isEqualTo(4);
        assertThat(ranges.take(4)).isEqualTo(-1);
        ranges.giveBack(0, 4);
        assertThat(ranges.take(2)).isZero();
        assertThat(ranges.take(3)).isEqualTo(-1);
        assertThat(ranges.take(2)).isEqualTo(2);
    }
}
