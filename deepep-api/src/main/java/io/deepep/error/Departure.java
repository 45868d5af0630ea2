package io.deepep.error;

import java.util.List;
import java.util.Optional;

/**
 * A rank that is no longer in its group, and why.
 *
 * @param rank which rank
 * @param reason what is known about it, a sentence without a full stop: {@code rank 3 failed:
 *     java.io.IOException: disk full}
 * @param isOrderly whether the rank closed its communicator; if not, the others cannot continue as
 *     before
 * @param blamed the rank that this rank itself waited for in vain, or {@code rank}
 */
public record Departure(int rank, String reason, boolean isOrderly, int blamed) {
    private static final int MAX_REASON_LENGTH = 2000;

    /** The rank closed its communicator. */
    public static Departure left(int rank) {
        return new Departure(rank, "rank " + rank + " has left the group", true, rank);
    }

    /** The rank gave no reason; {@code how} says what was seen, as in "its process ended". */
    public static Departure lost(int rank, String how) {
        return new Departure(rank, "rank " + rank + " was lost: " + how, false, rank);
    }

    /** The rank threw {@code cause}. */
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
                return timeout.peer();
            }
        }
        return rank;
    }

    /** Whether the rank itself failed, and not because it waited for another. */
    private boolean isRoot() {
        return !isOrderly && blamed == rank;
    }

    /**
     * The rank to blame for a wait for {@code peer}: the one that caused its departure or, if it
     * has not departed, the first that failed or was lost without blaming another. Empty if no rank
     * on which {@code peer} could depend is known to be gone.
     *
     * @param departures in the order in which they became known
     * @param waiter who waits, and is not to blame
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
