package io.deepep.lowlatency;

import io.deepep.Tensor;
import io.deepep.error.CallOrderException;

/**
 * Where every second dispatch of a rank puts what it receives, and how far the latest of them has
 * come. A rank has two, so two results are alive: see {@link Banks}.
 */
public abstract class Bank {
    /** How far the bank's dispatch has come. */
    private enum Phase {
        /** None yet, or it failed. */
        EMPTY,
        /** Sent, not received. */
        SENT,
        /** Received; on a GPU also if that is only enqueued. */
        RECEIVED
    }

    private Phase phase = Phase.EMPTY;
    private long dispatch;
    private int numTokens;
    private int numTopk;

    /** I32 [El, R*maxTokens], see {@link io.deepep.LowLatencyHandle#srcInfo}. */
    protected abstract Tensor srcInfo();

    /** I64 [El, R], see {@link io.deepep.LowLatencyHandle#layoutRange}. */
    protected abstract Tensor layoutRange();

    /**
     * Takes the bank for a dispatch that is about to be sent.
     *
     * @throws CallOrderException if the one before it was not received
     */
    final void open(long number, int tokens, int topk) {
        if (phase == Phase.SENT) {
            throw new CallOrderException(
                    ("dispatch %s has been sent but not received; run its receive hook before the second dispatch"
                                    + " after it")
                            .formatted(dispatch));
        }
        dispatch = number;
        numTokens = tokens;
        numTopk = topk;
        phase = Phase.SENT;
    }

    /** Forgets its dispatch; {@code number} is in its place without having sent anything. */
    final void skip(long number) {
        dispatch = number;
        phase = Phase.EMPTY;
    }

    /** Its dispatch is received. */
    public final void setReceived() {
        phase = Phase.RECEIVED;
    }

    /** Its dispatch will not be received. */
    public final void forgetSent() {
        phase = phase == Phase.SENT ? Phase.EMPTY : phase;
    }

    /** Its dispatch failed. */
    public final void setFailed() {
        phase = Phase.EMPTY;
    }

    /** Whether that dispatch is sent and not received. */
    final boolean isSent(long number) {
        return phase == Phase.SENT && dispatch == number;
    }

    final boolean isReceived() {
        return phase == Phase.RECEIVED;
    }

    /** Counts the rank's dispatches; 0 for none since the last clean. */
    public final long dispatch() {
        return dispatch;
    }

    /** T of its dispatch. */
    public final int numTokens() {
        return numTokens;
    }

    /** K of its dispatch. */
    public final int numTopk() {
        return numTopk;
    }
}
