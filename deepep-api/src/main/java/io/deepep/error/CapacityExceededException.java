package io.deepep.error;

/**
 * A rank would receive more rows than it has room for. Thrown on every rank, and the buffer stays
 * usable. Nothing was sent, except where rows of the expanded layout are too many: only their
 * receiver sees that.
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
     * @param needed rows that it would receive; of the expanded layout with padding
     * @param capacity rows that it has room for
     * @param cure what to do, as part of a sentence; it names the setting to raise
     */
    public CapacityExceededException(int rank, long needed, long capacity, String cure) {
        super(
                "rank %s would receive %s rows, but has room for %s; %s"
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

    /** Rows that the rank would receive; of the expanded layout, those of the result. */
    public long needed() {
        return needed;
    }

    /** Rows that the rank has room for. */
    public long capacity() {
        return capacity;
    }
}
