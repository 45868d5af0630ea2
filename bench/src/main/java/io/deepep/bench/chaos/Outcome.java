package io.deepep.bench.chaos;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.testkit.oracle.OracleMismatch;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How one rank came out of a run.
 *
 * @param peer whom its error names; -1 without one
 * @param text the error in a line
 */
record Outcome(Kind kind, int peer, String text) {
    /** What there is. */
    enum Kind {
        /** All rounds were made and all results were right. */
        PASSED,
        /** It was told that another rank did not come or is gone. */
        NAMED,
        /** It got another error. */
        FAILED,
        /** A result was wrong. */
        WRONG,
        /** It did not come back in time. */
        HUNG,
        /** Its process ended. */
        DEAD
    }

    private static final int LONGEST_TEXT = 600;
    private static final Pattern MEETING_RANK = Pattern.compile(": rank (\\d+): ");

    static final Outcome PASSED = new Outcome(Kind.PASSED, -1, "");
    static final Outcome HUNG = new Outcome(Kind.HUNG, -1, "did not come back");
    static final Outcome DEAD = new Outcome(Kind.DEAD, -1, "its process ended");

    /** What a rank that threw {@code failure} came to. */
    static Outcome of(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof DeepEpTimeoutException gone) {
                return new Outcome(Kind.NAMED, gone.peer(), line(gone));
            }
            // Of a meeting that failed on one rank all are told why, and on which.
            Matcher who = MEETING_RANK.matcher(String.valueOf(cause.getMessage()));
            if (cause instanceof DeepEpUnavailableException && who.find()) {
                return new Outcome(Kind.NAMED, Integer.parseInt(who.group(1)), line(cause));
            }
            if (cause instanceof OracleMismatch) {
                return new Outcome(Kind.WRONG, -1, line(cause));
            }
        }
        return new Outcome(Kind.FAILED, -1, line(failure));
    }

    /** What a rank came to that went on without {@code peer}. */
    static Outcome without(int peer) {
        return new Outcome(Kind.NAMED, peer, "went on without rank " + peer);
    }

    /** What a rank came to that threw {@code failure} where nobody was disturbed any more. */
    static Outcome afterwards(Throwable failure) {
        return new Outcome(Kind.FAILED, -1, "with a new rank in an open buffer: " + line(failure));
    }

    private static String line(Throwable failure) {
        String text = failure.toString().replaceAll("\\s+", " ");
        return text.substring(0, Math.min(text.length(), LONGEST_TEXT));
    }

    @Override
    public String toString() {
        return kind.name().toLowerCase(Locale.ROOT) + (text.isEmpty() ? "" : " (" + text + ")");
    }
}
