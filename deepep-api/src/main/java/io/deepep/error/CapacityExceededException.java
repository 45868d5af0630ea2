package io.deepep.error;

/**
 * A rank would receive more tokens than it has room for. Thrown on every rank; nothing was sent,
 * and the buffer stays usable.
 */
public final class CapacityExceededException extends DeepEpException {
    private static final long serialVersionUID = 1L;
    private final int rank;
    private final long needed;
    private final long capacity;

    /**
     * Creates the exception.
     *
     * @param rank the rank that lacks room
     * @param needed tokens that it would receive
     * @param capacity tokens that it has room for
     * @param cure what to do, as part of a sentence; it names the setting to raise
     */
    public CapacityExceededException(int rank, long needed, long capacity, String cure) {
        super(
                "rank %s would receive %s tokens, but has room for %s; %s"
                        .formatted(rank, needed, capacity, cure),
                null);
        this.rank = rank;
        this.needed = needed;
        this.capacity = capacity;
    }

    /** The rank that lacks room. */
    public int rank() {
        return rank;
    }

    /** Tokens that the rank would receive. */
    public long needed() {
        return needed;
    }

    /** Tokens that the rank has room for. */
    public long capacity() {
        return capacity;
    }
}
