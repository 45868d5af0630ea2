package io.deepep.spi;

import io.deepep.Plan;
import io.deepep.error.DeepEpTimeoutException;
import java.time.Duration;

/**
 * The time-outs of the waits of a call.
 *
 * @param timeout the time-out of waits once all ranks are in the call
 * @param startTimeout the time-out of waits for ranks that have not yet begun it; null for {@code
 *     timeout}
 */
public record CallTimeouts(Duration timeout, Duration startTimeout) {
    /** The time-outs of a plan's calls: those that the plan gives, otherwise these. */
    public CallTimeouts of(Plan plan) {
        return new CallTimeouts(
                plan.timeout() == null ? timeout : plan.timeout(),
                plan.startTimeout() == null ? startTimeout : plan.startTimeout());
    }

    /** How long to wait for ranks that have not yet begun. */
    public Duration start() {
        return startTimeout == null ? timeout : startTimeout;
    }

    /** {@link #start} in nanoseconds. */
    public long startNanos() {
        return start().toNanos();
    }

    /** How long other waits last, in nanoseconds. */
    public long nanos() {
        return timeout.toNanos();
    }

    /**
     * Creates the exception for a wait of {@code rank} for {@code peer} that a time-out ended; the
     * message names the time-out to raise.
     *
     * @param begins whether the peer had not yet begun the call
     */
    public DeepEpTimeoutException expired(
            boolean begins, int rank, int peer, String phase, long expected, long observed) {
        return begins
                ? DeepEpTimeoutException.notBegun(
                        rank, peer, phase, expected, observed, startNanos())
                : new DeepEpTimeoutException(rank, peer, phase, expected, observed, nanos());
    }
}
