package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.LowLatencyLimits;
import io.deepep.lowlatency.LowLatencyLayout;

/**
 * Queue pairs that a buffer's kernels need for each PE.
 *
 * @param numQpsPerPe one for every block that sends, so that blocks do not wait for each other's
 *     doorbells, and what a block sends stays in order
 * @param qpDepth entries of each: twice what a kernel posts before it waits, so that it finds room
 *     while the NIC still reports on what came before
 */
public record NvshmemQueues(int numQpsPerPe, int qpDepth) {
    /** Entries of a put that is followed by a signal. */
    private static final int ENTRIES_PER_PUT_SIGNAL = 2;

    /** Header, records, how the call ended, and the rest of a ring that ends with it. */
    private static final int PUTS_PER_CALL = 4;

    /** A work-queue entry, and the completion that IBGDA keeps room for. */
    private static final int BYTES_PER_ENTRY = 64 + 64;

    /** NVSHMEM rings the doorbell once for so many entries, and needs room for two batches. */
    private static final int FEWEST_ENTRIES = 256;

    private static final int MOST_ENTRIES = 32768;

    static NvshmemQueues of(BufferOptions options) {
        NvshmemQueues queues = new NvshmemQueues(1, FEWEST_ENTRIES);
        if (options.normal() != null) {
            queues = queues.and(normal(options.dispatchConfig().covering(options.combineConfig())));
        }
        if (options.lowLatency() != null) {
            queues = queues.and(lowLatency(options.lowLatency(), options.topology().numRanks()));
        }
        return queues;
    }

    /**
     * What normal mode needs: every block sends rows, or tells that it has taken some: to each peer
     * a message per chunk of the rings that it serves.
     */
    public static NvshmemQueues normal(Config config) {
        int chunks = Math.ceilDiv(config.rdmaRecvChunk(), config.rdmaSendChunk());
        return of(config.numSms(), 2L * chunks + PUTS_PER_CALL);
    }

    /**
     * What low-latency mode needs: a queue per local expert, each with room for a block that sends
     * all batches of a dispatch, whose tokens cross once per rank. A combine's batches go round the
     * blocks; where one rank has computed all rows of another, blocks wait for room.
     */
    public static NvshmemQueues lowLatency(LowLatencyLimits limits, int numRanks) {
        return of(
                Math.ceilDiv(limits.numExperts(), numRanks),
                Math.ceilDiv(limits.maxTokens(), LowLatencyLayout.DISPATCH_BATCH_ROWS)
                        + PUTS_PER_CALL);
    }

    /** Memory of the queue pairs to one PE: on the GPU under IBGDA. */
    public long bytesPerPe() {
        return (long) numQpsPerPe * qpDepth * BYTES_PER_ENTRY;
    }

    private static NvshmemQueues of(int numQps, long puts) {
        long entries = 2 * ENTRIES_PER_PUT_SIGNAL * puts;
        long depth = Long.highestOneBit(entries - 1) << 1;
        return new NvshmemQueues(
                numQps, (int) Math.clamp(depth, (long) FEWEST_ENTRIES, (long) MOST_ENTRIES));
    }

    private NvshmemQueues and(NvshmemQueues other) {
        return new NvshmemQueues(
                Math.max(numQpsPerPe, other.numQpsPerPe), Math.max(qpDepth, other.qpDepth));
    }
}
