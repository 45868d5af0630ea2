package io.deepep.spi;

import io.deepep.Plan;
import io.deepep.error.DeepEpTimeoutException;
import java.time.Duration;

/**
 * How long the waits of a call last.
 *
 * @param timeout of waits once all ranks are in the call
 * @param startTimeout of waits for ranks that have yet to begin it; null: the same
 */
public record CallTimeouts(Duration timeout, Duration startTimeout) {
    /** Those of the plan's calls: what it says itself, and for the rest what its buffer says. */
    public CallTimeouts of(Plan plan) {
        return new CallTimeouts(
                plan.timeout() == null ? timeout : plan.timeout(),
                plan.startTimeout() == null ? startTimeout : plan.startTimeout());
    }

    /** How long to wait for ranks that have yet to begin. */
    public Duration start() {
        return startTimeout == null ? timeout : startTimeout;
    }

    /** The same in nanoseconds. */
    public long startNanos() {
        return start().toNanos();
    }

    /** How long other waits last, in nanoseconds. */
    public long nanos() {
        return timeout.toNanos();
    }

    /**
     * The error of {@code rank}'s wait for {@code peer} that a time-out ended, and names the one to
     * raise.
     *
     * @param begins whether the peer had yet to begin
     */
    public DeepEpTimeoutException expired(
            boolean begins, int rank, int peer, String phase, long expected, long observed) {
        return begins
                ? DeepEpTimeoutException.notBegun(
                        rank, peer, phase, expected, observed, startNanos())
                : new DeepEpTimeoutException(rank, peer, phase, expected, observed, nanos());
    }
}
