package io.deepep.error;

/**
 * More tokens would arrive at a rank than it has room for. Thrown on every rank; nothing was sent,
 * and the buffer stays usable.
 */
public final class CapacityExceededException extends DeepEpException {
    private static final long serialVersionUID = 1L;
    private final int rank;
    private final long needed;
    private final long capacity;

    /** Creates the error; {@code cure} names the setting to raise. */
    public CapacityExceededException(int rank, long needed, long capacity, String cure) {
        super(
                "rank %s would receive %s tokens, it has room for %s; %s"
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

    /** Tokens that would arrive. */
    public long needed() {
        return needed;
    }

    /** Tokens there is room for. */
    public long capacity() {
        return capacity;
    }
}
