package io.deepep.lowlatency.cuda;

import io.deepep.cuda.CudaStream;
import io.deepep.cuda.memory.PinnedSlots;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.stream.IntStream;

/**
 * Which ranks are masked. The words that kernels read lie on the GPU; kernels that mask a rank by
 * themselves say so in mapped host memory too.
 */
final class RankMask {
    private final CudaStream stream;
    private final int numRanks;
    private final long wordsAddress;
    private final long deviceAddress;

    /** An i32 per rank: 1 if it is masked, by hand or by a kernel. */
    private final MemorySegment masks;

    /**
     * No rank is masked.
     *
     * @param wordsAddress device address of the zeroed words, bit by rank
     * @param slot holds an i32 per rank, which kernels set to 1
     */
    RankMask(CudaStream stream, int numRanks, long wordsAddress, PinnedSlots.Slot slot) {
        this.stream = stream;
        this.numRanks = numRanks;
        this.wordsAddress = wordsAddress;
        this.deviceAddress = slot.deviceAddress();
        this.masks = slot.memory().asSlice(0, (long) Integer.BYTES * numRanks);
        masks.fill((byte) 0);
    }

    /** Where kernels say that they have masked a rank. */
    long deviceAddress() {
        return deviceAddress;
    }

    /** Masks or unmasks a rank, after the work enqueued so far. */
    void update(int rank, boolean masked) {
        stream.synchronize();
        masks.setAtIndex(ValueLayout.JAVA_INT, rank, masked ? 1 : 0);
        write();
    }

    /** Writes the words again, in stream order. */
    void write() {
        for (int first = 0; first < numRanks; first += Integer.SIZE) {
            int word = 0;
            for (int rank = first; rank < Math.min(first + Integer.SIZE, numRanks); rank++) {
                word |= isMasked(rank) ? 1 << rank : 0;
            }
            stream.writeInt(wordsAddress + first / Byte.SIZE, word);
        }
    }

    /** 1 for each masked rank, once the work enqueued so far is over. */
    int[] query() {
        stream.synchronize();
        return IntStream.range(0, numRanks).map(rank -> isMasked(rank) ? 1 : 0).toArray();
    }

    private boolean isMasked(int rank) {
        return masks.getAtIndex(ValueLayout.JAVA_INT, rank) != 0;
    }
}
