package io.deepep.error;

import java.util.List;
import java.util.Optional;

/**
 * A rank that is no longer in its group, and the reason.
 *
 * @param rank the rank
 * @param reason what is known about it, as a sentence without a full stop: {@code rank 3 failed:
 *     java.io.IOException: disk full}
 * @param isOrderly whether the rank closed its communicator, rather than failed or was lost
 * @param blamed the rank that caused the departure because this rank waited for it in vain;
 *     otherwise {@code rank}
 */
public record Departure(int rank, String reason, boolean isOrderly, int blamed) {
    private static final int MAX_REASON_LENGTH = 2000;

    /** The departure of a rank that closed its communicator. */
    public static Departure left(int rank) {
        return new Departure(rank, "rank " + rank + " has left the group", true, rank);
    }

    /**
     * The departure of a rank that gave no reason; {@code how} says what was seen, such as "its
     * process ended".
     */
    public static Departure lost(int rank, String how) {
        return new Departure(rank, "rank " + rank + " was lost: " + how, false, rank);
    }

    /** The departure of a rank that threw {@code cause}. */
    public static Departure failed(int rank, Throwable cause) {
        String text = "rank " + rank + " failed: " + cause;
        return new Departure(
                rank,
                text.length() <= MAX_REASON_LENGTH ? text : text.substring(0, MAX_REASON_LENGTH),
                false,
                blamedBy(rank, cause));
    }

    private static int blamedBy(int rank, Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof DeepEpTimeoutException timeout) {
                return timeout.isPeerAhead() ? rank : timeout.peer();
            }
        }
        return rank;
    }

    /** Whether the rank itself failed, rather than because it waited for another. */
    private boolean isRoot() {
        return !isOrderly && blamed == rank;
    }

    /**
     * The departure that explains why a wait for {@code peer} is in vain: that of the rank that
     * caused the departure of {@code peer} or, if {@code peer} has not departed, of the first rank
     * that failed or was lost without blaming another. Empty if there is none.
     *
     * @param departures in the order in which they became known
     * @param waiter the rank that waits; never blamed
     * @param peer the rank that it waits for
     */
    public static Optional<Departure> culprit(List<Departure> departures, int waiter, int peer) {
        Departure named = of(departures, peer);
        for (int step = 0; named != null && step < departures.size(); step++) {
            Departure next = of(departures, named.blamed);
            named = next == null ? named : next;
        }
        if (named != null && named.isRoot()) {
            return Optional.of(named);
        }
        Optional<Departure> root = departures.stream().filter(Departure::isRoot).findFirst();
        if (root.isPresent() || named == null) {
            return root;
        }
        return Optional.of(
                named.isOrderly || named.blamed == waiter
                        ? named
                        : new Departure(named.blamed, named.reason, false, named.blamed));
    }

    /** The departure of {@code rank}, or null if it has not departed. */
    public static Departure of(List<Departure> departures, int rank) {
        for (int i = 0; i < departures.size(); i++) {
            if (departures.get(i).rank == rank) {
                return departures.get(i);
            }
        }
        return null;
    }
}
