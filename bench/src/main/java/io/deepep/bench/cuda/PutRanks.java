package io.deepep.bench.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.LaunchConfig;
import java.lang.foreign.Arena;
import java.time.Duration;

/** Ranks that put to each other, as far as they are in this process. */
interface PutRanks extends AutoCloseable {
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

    /**
     * One launch on every rank that takes part.
     *
     * @param ranks the first so many take part
     * @param blocks of each
     * @param warps of a block
     * @param rows messages, of a warp or to a peer
     * @param rowBytes of a message
     * @param returnBytes of an answer
     * @param slotBytes of a slot
     */
    record Load(
            Pattern pattern,
            int ranks,
            int blocks,
            int warps,
            int rows,
            long rowBytes,
            long returnBytes,
            long slotBytes) {
        private static final int WARP = 32;

        LaunchConfig launch(Arena arena) {
            return new LaunchConfig(arena, blocks, WARP * warps);
        }

        IllegalStateException lost(Duration timeout) {
            return new IllegalStateException(
                    "puts of %s bytes did not arrive within %s seconds"
                            .formatted(rowBytes, timeout.toSeconds()));
        }
    }

    /** Of the first rank here. */
    CudaContext context();

    /** That all ranks have together. */
    int numGpus();

    /**
     * Microseconds that rank 0 takes; something else in other processes than its own.
     *
     * @throws IllegalStateException if a rank timed out
     */
    double micros(Load load);

    /**
     * Requires that a message of rank 0 lies at rank 1, to its last byte.
     *
     * @throws IllegalStateException if it does not
     */
    void requireArrived(long slotOffset, long numBytes);

    @Override
    void close();
}
