package io.deepep;

/**
 * Thrown by {@link InProcessGroup#run} if a rank failed. The cause is what the rank threw; failures
 * of other ranks are suppressed exceptions of this type.
 */
public final class RankFailedException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final int rank;

    RankFailedException(int rank, Throwable cause) {
        super("rank " + rank + " failed: " + cause, cause);
        this.rank = rank;
    }

    /** The rank that failed first. */
    public int rank() {
        return rank;
    }
}
