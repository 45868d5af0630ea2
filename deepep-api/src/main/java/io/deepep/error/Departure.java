package io.deepep.error;

import java.util.List;
import java.util.Optional;

/**
 * A rank that is in its group no more, and why.
 *
 * @param rank which
 * @param reason what is known of it, a sentence without its end: {@code rank 3 failed:
 *     java.io.IOException: disk full}
 * @param isOrderly whether the rank closed its communicator; otherwise the others cannot go on as
 *     they did
 * @param blamed whom the rank itself waited for in vain, or {@code rank}
 */
public record Departure(int rank, String reason, boolean isOrderly, int blamed) {
    private static final int MAX_REASON_LENGTH = 2000;

    /** The rank closed its communicator. */
    public static Departure left(int rank) {
        return new Departure(rank, "rank " + rank + " has left the group", true, rank);
    }

    /** The rank said nothing; {@code how} tells what was seen, as in "its process ended". */
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

    /** Whether the rank failed by itself, not because it waited for another. */
    private boolean isRoot() {
        return !isOrderly && blamed == rank;
    }

    /**
     * Who is to blame for a wait for {@code peer}: the rank behind its departure, or if it is
     * there, the first that failed or was lost without blaming another. Empty if nobody is known to
     * be gone on whom {@code peer} could depend.
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

    /** The departure of {@code rank}, or null if it is there. */
    public static Departure of(List<Departure> departures, int rank) {
        for (int i = 0; i < departures.size(); i++) {
            if (departures.get(i).rank == rank) {
                return departures.get(i);
            }
        }
        return null;
    }
}
