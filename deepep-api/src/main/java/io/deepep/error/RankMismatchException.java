package io.deepep.error;

/**
 * Ranks disagree about a call: its kind, its shapes or options, or the version of the library.
 * Thrown on every rank; the message gives the values of two ranks that differ.
 */
public final class RankMismatchException extends DeepEpException {
    private static final long serialVersionUID = 1L;

    /** Creates the exception. */
    public RankMismatchException(String message) {
        super(message, null);
    }

    /** Creates the exception for a property in which two ranks differ. */
    public static RankMismatchException of(
            String operation,
            String property,
            int rank,
            Object value,
            int otherRank,
            Object other) {
        return new RankMismatchException(
                "%s: ranks disagree on %s: rank %s has %s, rank %s has %s; every rank must use the same value"
                        .formatted(operation, property, rank, value, otherRank, other));
    }

    /** Creates the exception for a rank whose message to the others is not of this call. */
    public static RankMismatchException ofCall(String operation, int rank) {
        return new RankMismatchException(
                "%s: rank %s makes a different call on its communicator; every rank must make the same calls in the same order"
                        .formatted(operation, rank));
    }

    /** Creates the exception for something that one rank gives and another does not. */
    public static RankMismatchException ofGiven(
            String operation, String what, int giver, int otherRank) {
        return new RankMismatchException(
                "%s: rank %s gives %s, rank %s does not; give it on all ranks or on none"
                        .formatted(operation, giver, what, otherRank));
    }
}
