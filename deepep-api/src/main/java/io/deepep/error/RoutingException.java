package io.deepep.error;

/**
 * A rank's routing data is not valid: an expert index out of range, counts that contradict the
 * mask, or, where it matters, a different selection than was dispatched. Found while the operation
 * ran, so it is thrown on every rank and names the rank at fault; nothing was sent, and the buffer
 * stays usable.
 */
public final class RoutingException extends DeepEpException {
    private static final long serialVersionUID = 1L;
    private final int rank;

    /** Creates the error; {@code rank} is the one whose data is not valid. */
    public RoutingException(int rank, String message) {
        super("rank " + rank + ": " + message, null);
        this.rank = rank;
    }

    /** The rank whose routing data is not valid. */
    public int rank() {
        return rank;
    }
}
