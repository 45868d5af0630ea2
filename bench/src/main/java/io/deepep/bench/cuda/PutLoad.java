package io.deepep.bench.cuda;

import io.deepep.cuda.LaunchConfig;
import java.lang.foreign.Arena;

/**
 * One launch on every rank that takes part.
 *
 * @param ranks the first so many take part
 * @param blocks of each
 * @param warps of a block
 * @param rows messages, of a warp or to a peer
 * @param rowBytes of a message
 * @param returnBytes of an answer
 */
record PutLoad(
        Pattern pattern,
        int ranks,
        int blocks,
        int warps,
        int rows,
        long rowBytes,
        long returnBytes) {
    private static final int WARP = 32;
    private static final long MIN_BYTES = 16;

    /** The kernels. */
    enum Pattern {
        /** Rank 0 to rank 1. */
        BANDWIDTH("put"),
        /** To and fro between them. */
        LATENCY("put_latency"),
        /** Every rank to every other and back. */
        SPARSE("put_sparse");

        private final String kernel;

        Pattern(String kernel) {
            this.kernel = kernel;
        }

        String kernel() {
            return kernel;
        }
    }

    /** The least that a pattern can be, with so many messages. */
    static PutLoad small(Pattern pattern, int ranks, int rows) {
        return new PutLoad(pattern, ranks, 1, 1, rows, MIN_BYTES, MIN_BYTES);
    }

    /** Of a slot, which holds a message or an answer. */
    long slotBytes() {
        return Math.max(rowBytes, returnBytes);
    }

    LaunchConfig launch(Arena arena) {
        return new LaunchConfig(arena, blocks, WARP * warps);
    }
}
