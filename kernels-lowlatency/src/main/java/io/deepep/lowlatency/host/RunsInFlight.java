package io.deepep.lowlatency.host;

import io.deepep.spi.CallOrderException;

/**
 * The runs of one operation that are sent but not received: at most two, because the kernels refuse
 * a third. A clean forgets them.
 */
final class RunsInFlight {
    private final HostLowLatencyKernels kernels;
    private int generation;
    private long oldest;
    private long latest;

    RunsInFlight(HostLowLatencyKernels kernels) {
        this.kernels = kernels;
    }

    /** Notes a run that has been sent. */
    void add(long epoch) {
        forgetCleaned();
        latest = epoch;
        oldest = oldest != 0 ? oldest : epoch;
    }

    /** Takes out the oldest run. */
    long take() {
        forgetCleaned();
        if (oldest == 0) {
            throw new CallOrderException(
                    "nothing is left to receive; run each receive hook once, before a clean");
        }
        long epoch = oldest;
        oldest = latest == epoch ? 0 : latest;
        return epoch;
    }

    /** The epoch of the run that was sent last. */
    long latest() {
        return latest;
    }

    private void forgetCleaned() {
        if (generation != kernels.generation()) {
            generation = kernels.generation();
            oldest = 0;
        }
    }
}
