package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.LowLatencyLimits;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.normal.RingShape;

/**
 * The queue pairs that a buffer's kernels need for each PE.
 *
 * @param numQpsPerPe number of queue pairs: one for every block that sends, so that blocks do not
 *     wait for each other's doorbells, and what a block sends stays in order
 * @param qpDepth entries of each queue pair: twice what a kernel posts before it waits, so that it
 *     finds room while the NIC still completes earlier entries
 */
public record NvshmemQueues(int numQpsPerPe, int qpDepth) {
    /** Entries of a put that is followed by a signal. */
    private static final int ENTRIES_PER_PUT_SIGNAL = 2;

    /** Header, records, how the call ended, and the rest of a ring that ends with it. */
    private static final int PUTS_PER_CALL = 4;

    /** Of the rings that a block fills in a dispatch, half of a channel's: rests and totals. */
    private static final int PUTS_OF_RINGS = RingShape.MOST_DISPATCH_RINGS;

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
     * The needs of normal mode: every block sends rows or acknowledges them, with one message to
     * each peer per chunk of the rings that it serves.
     */
    public static NvshmemQueues normal(Config config) {
        int chunks = Math.ceilDiv(config.rdmaRecvChunk(), config.rdmaSendChunk());
        return of(config.numSms(), 2L * chunks + PUTS_PER_CALL + PUTS_OF_RINGS);
    }

    /**
     * The needs of low-latency mode: a queue per local expert, with room for a block that sends all
     * batches of a dispatch, in which a token is sent once per rank. The batches of a combine are
     * distributed over the blocks; if one rank has computed all rows of another, blocks wait for
     * room.
     */
    public static NvshmemQueues lowLatency(LowLatencyLimits limits, int numRanks) {
        return of(
                Math.ceilDiv(limits.numExperts(), numRanks),
                Math.ceilDiv(limits.maxTokens(), LowLatencyLayout.DISPATCH_BATCH_ROWS)
                        + PUTS_PER_CALL);
    }

    /** Bytes of the queue pairs to one PE; with IBGDA, in GPU memory. */
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
