package io.deepep.lowlatency;

/**
 * The latest of every second call of a kind that a rank makes, and how far it has come. There are
 * two for each kind, so two results are alive: see {@link Banks}.
 */
public class Bank {
    /** How far the bank's call has come. */
    private enum Phase {
        /** None yet, or it failed. */
        EMPTY,
        /** Sent, not received. */
        SENT,
        /** Received; on a GPU also if that is only enqueued. */
        RECEIVED
    }

    private Phase phase = Phase.EMPTY;
    private long call;

    /** No call yet. */
    public Bank() {}

    /** Takes the bank for a call that is about to be sent. */
    final void open(long number) {
        call = number;
        phase = Phase.SENT;
    }

    /** Forgets its call; {@code number} is in its place without having sent anything. */
    final void skip(long number) {
        call = number;
        phase = Phase.EMPTY;
    }

    /** Its call is received. */
    public final void setReceived() {
        phase = Phase.RECEIVED;
    }

    /** Its call will not be received, or fails while it is, unless it was received before. */
    public final void forgetSent() {
        phase = phase == Phase.SENT ? Phase.EMPTY : phase;
    }

    final boolean isSent() {
        return phase == Phase.SENT;
    }

    final boolean isReceived() {
        return phase == Phase.RECEIVED;
    }

    /** Counts the rank's calls of the kind; 0 for none since the last clean. */
    public final long call() {
        return call;
    }
}
