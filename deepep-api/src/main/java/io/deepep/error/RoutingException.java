package io.deepep.error;

/**
 * The routing data of a rank is not valid: an expert index is out of range, a layout contradicts
 * the selections, a combine is given different selections from its dispatch, or that dispatch
 * failed. Found while the call runs, and therefore thrown on every rank that takes part in the
 * call; it names the rank at fault. No rows were sent, and the buffer stays usable. {@link
 * io.deepep.Buffer#getDispatchLayout}, which is not collective, throws it on the rank that calls
 * it.
 */
public final class RoutingException extends DeepEpException {
    private static final long serialVersionUID = 1L;
    private final int rank;

    /**
     * Creates the exception.
     *
     * @param rank the rank whose routing data is not valid
     * @param message what is wrong with it
     */
    public RoutingException(int rank, String message) {
        super("rank " + rank + ": " + message, null);
        this.rank = rank;
    }

    /** The rank whose routing data is not valid. */
    public int rank() {
        return rank;
    }
}
