package io.deepep.error;

/**
 * Ranks disagree about what they are doing: version, shapes, experts, or the operation itself.
 * Thrown on every rank, with the values of both.
 */
public final class RankMismatchException extends DeepEpException {
    private static final long serialVersionUID = 1L;

    /** Creates the error. */
    public RankMismatchException(String message) {
        super(message, null);
    }

    /** Creates the error for one property on which two ranks differ. */
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
}
