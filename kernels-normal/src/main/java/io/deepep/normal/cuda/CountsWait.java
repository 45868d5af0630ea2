package io.deepep.normal.cuda;

import io.deepep.cuda.VirtualThreads;
import io.deepep.error.DeepEpTimeoutException;

/**
 * Waits on the host for the counts of a launch. The kernel itself gives up on absent peers; this
 * only guards against a GPU that does nothing at all.
 */
final class CountsWait {
    private static final int SPINS_BETWEEN_LOOKS = 4096;
    private static final long GRACE_NANOS = 10_000_000_000L;

    private final CudaNormalState state;
    private final NormalStatus status;

    CountsWait(CudaNormalState state, NormalStatus status) {
        this.state = state;
        this.status = status;
    }

    /** Waits; false if the launch ended without counts. */
    boolean awaitCounts() {
        long start = System.nanoTime();
        long kernels = Math.max(status.timeouts().startNanos(), status.timeouts().nanos());
        for (int looks = 0; !isOver(); looks++) {
            if (VirtualThreads.isOne()) {
                VirtualThreads.pause(looks);
            }
            state.stream.isIdle(); // throws if the GPU has failed
            long waited = System.nanoTime() - start;
            if (waited > 3 * kernels + GRACE_NANOS) {
                int rank = state.topology.rank();
                throw new DeepEpTimeoutException(rank, rank, "dispatch.launch", 1, 0, waited);
            }
        }
        return status.isReady() && status.hasCounts();
    }

    /** Spins a little, until there are counts or the last word, which comes after them. */
    private boolean isOver() {
        for (int spins = 0; spins < SPINS_BETWEEN_LOOKS; spins++) {
            if (status.isReady() || status.isDone()) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }
}
