package io.deepep.lowlatency.cuda;

import io.deepep.cuda.CudaStream;
import io.deepep.cuda.memory.PinnedSlots;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Which ranks are masked. The word that kernels read lies on the GPU; kernels that mask a rank by
 * themselves say so in mapped host memory too.
 */
final class RankMask {
    private final CudaStream stream;
    private final int numRanks;
    private final long wordAddress;
    private final long deviceAddress;
    private final MemorySegment timedOut;
    private int byHand;

    /**
     * No rank is masked.
     *
     * @param wordAddress device address of the zeroed word, bit by rank
     * @param slot holds an i32 per rank, which kernels set to 1
     */
    RankMask(CudaStream stream, int numRanks, long wordAddress, PinnedSlots.Slot slot) {
        this.stream = stream;
        this.numRanks = numRanks;
        this.wordAddress = wordAddress;
        this.deviceAddress = slot.deviceAddress();
        this.timedOut =
                slot.page().segment().asSlice(slot.offset(), (long) Integer.BYTES * numRanks);
        timedOut.fill((byte) 0);
    }

    /** Where kernels say that they have masked a rank. */
    long deviceAddress() {
        return deviceAddress;
    }

    /** Masks or unmasks a rank, after the work enqueued so far. */
    void update(int rank, boolean masked) {
        stream.synchronize();
        timedOut.setAtIndex(ValueLayout.JAVA_INT, rank, 0);
        byHand = masked ? byHand | 1 << rank : byHand & ~(1 << rank);
        write();
    }

    /** Writes the word again, in stream order. */
    void write() {
        int word = byHand;
        for (int rank = 0; rank < numRanks; rank++) {
            word |= hasTimedOut(rank) ? 1 << rank : 0;
        }
        stream.writeInt(wordAddress, word);
    }

    /** 1 for each masked rank, once the work enqueued so far is over. */
    int[] query() {
        stream.synchronize();
        int[] masks = new int[numRanks];
        for (int rank = 0; rank < numRanks; rank++) {
            masks[rank] = hasTimedOut(rank) || (byHand >> rank & 1) != 0 ? 1 : 0;
        }
        return masks;
    }

    private boolean hasTimedOut(int rank) {
        return timedOut.getAtIndex(ValueLayout.JAVA_INT, rank) != 0;
    }
}
