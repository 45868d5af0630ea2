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
    private final StatusBlock status;

    CountsWait(CudaNormalState state, StatusBlock status) {
        this.state = state;
        this.status = status;
    }

    /** Waits; false if the launch ended without counts. */
    boolean awaitCounts() {
        long start = System.nanoTime();
        long kernels = Math.max(status.timeouts().startNanos(), status.timeouts().nanos());
        for (int spins = 1; !status.isReady(); spins++) {
            if (status.isDone()) {
                break; // the last word comes after the counts
            }
            if (spins % SPINS_BETWEEN_LOOKS == 0) {
                if (VirtualThreads.isOne()) {
                    VirtualThreads.pause(spins / SPINS_BETWEEN_LOOKS);
                }
                state.stream.isIdle(); // throws if the GPU has failed
                long waited = System.nanoTime() - start;
                if (waited > 3 * kernels + GRACE_NANOS) {
                    int rank = state.topology.rank();
                    throw new DeepEpTimeoutException(rank, rank, "dispatch.launch", 1, 0, waited);
                }
            }
            Thread.onSpinWait();
        }
        return status.isReady() && status.hasCounts();
    }
}
