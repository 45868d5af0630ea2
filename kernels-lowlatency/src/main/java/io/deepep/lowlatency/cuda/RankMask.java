package io.deepep.lowlatency.cuda;

import io.deepep.cuda.CudaStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.stream.IntStream;

/**
 * Which ranks are masked. The words that kernels read lie on the GPU; kernels that mask a rank by
 * themselves say so in mapped host memory too.
 */
final class RankMask {
    private static final System.Logger LOG = System.getLogger(RankMask.class.getName());

    private final CudaStream stream;
    private final int rank;
    private final int numRanks;
    private final long wordsAddress;
    private final long deviceAddress;

    /** An i32 per rank: 1 if it is masked, by hand or by a kernel. */
    private final MemorySegment masks;

    /** The masked ranks that need no warning any more. */
    private final boolean[] known;

    /**
     * No rank is masked.
     *
     * @param rank this rank
     * @param wordsAddress device address of the zeroed words, bit by rank
     * @param masks an i32 per rank of the group, which kernels set to 1
     * @param deviceAddress where kernels find them
     */
    RankMask(
            CudaStream stream,
            int rank,
            long wordsAddress,
            MemorySegment masks,
            long deviceAddress) {
        this.stream = stream;
        this.rank = rank;
        this.numRanks = (int) (masks.byteSize() / Integer.BYTES);
        this.wordsAddress = wordsAddress;
        this.deviceAddress = deviceAddress;
        this.masks = masks;
        this.known = new boolean[numRanks];
        masks.fill((byte) 0);
    }

    /** Where kernels say that they have masked a rank. */
    long deviceAddress() {
        return deviceAddress;
    }

    /** Masks or unmasks a rank, after the work enqueued so far. */
    void update(int other, boolean masked) {
        stream.synchronize();
        warn();
        known[other] = masked;
        masks.setAtIndex(ValueLayout.JAVA_INT, other, masked ? 1 : 0);
        write();
    }

    /** Writes the words again, in stream order. */
    void write() {
        for (int first = 0; first < numRanks; first += Integer.SIZE) {
            int word = 0;
            for (int other = first; other < Math.min(first + Integer.SIZE, numRanks); other++) {
                word |= isMasked(other) ? 1 << other : 0;
            }
            stream.writeInt(wordsAddress + first / Byte.SIZE, word);
        }
    }

    /** 1 for each masked rank, once the work enqueued so far is over. */
    int[] query() {
        stream.synchronize();
        warn();
        return IntStream.range(0, numRanks).map(other -> isMasked(other) ? 1 : 0).toArray();
    }

    /** Warns of the ranks that kernels have masked since the last time. */
    void warn() {
        for (int other = 0; other < numRanks; other++) {
            if (isMasked(other) && !known[other]) {
                known[other] = true;
                LOG.log(
                        System.Logger.Level.WARNING,
                        "rank %s masks rank %s: it did not come to a low-latency call in time"
                                .formatted(rank, other));
            }
        }
    }

    private boolean isMasked(int other) {
        return masks.getAtIndex(ValueLayout.JAVA_INT, other) != 0;
    }
}
