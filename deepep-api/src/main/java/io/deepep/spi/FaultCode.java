package io.deepep.spi;

/** What can go wrong in a call: {@code Code} for kernels. */
public enum FaultCode implements KernelEnum {
    /** Nothing. */
    OK(0, ""),
    /** A selection that is neither -1 nor an expert. */
    EXPERT_OUT_OF_RANGE(1, "rank; token, k, seen = the expert"),
    /** Ranks do different things. */
    HEADER_MISMATCH(
            2, "rank; k = index of the header word, expected = that of peer, seen = that rank's"),
    /** More rows than a receiver has room for. */
    TOO_MANY_ROWS(3, "rank = receiver; expected = its limit, seen = rows"),
    /** A peer did not come. */
    TIMEOUT(4, "rank waited for peer in phase; expected, seen = flag words"),
    /** A peer gave up this call before this rank could notice why. */
    PEER_ABORTED(5, "seen = peer's code, k = the rank that it gave up on"),
    /** A peer has gone on to later calls. */
    OUT_OF_STEP(6, "peer is ahead: expected, seen = epochs"),
    /** More expanded rows than a receiver has room for. */
    TOO_MANY_EXPANDED(7, "rank = receiver; expected = its limit, seen = rows"),
    /** A handle that names rows its owner does not offer. */
    ROW_OUT_OF_RANGE(8, "this rank only: peer offers `expected` rows, the handle names row `seen`"),
    /** The blocks of a launch waited for one that could not start. */
    GRID_NOT_RESIDENT(9, "the blocks of one launch did not run together"),
    /** A layout whose mask is not that of the selections. */
    LAYOUT_MASK(10, "rank; token, k = receiver, seen = what the layout says"),
    /** A layout that miscounts the tokens to a rank. */
    LAYOUT_RANK_COUNT(11, "rank; token = receiver, k = what the layout says, seen = what it is"),
    /** A layout that miscounts the selections of an expert. */
    LAYOUT_EXPERT_COUNT(12, "rank; token = expert, k = what the layout says, seen = what it is"),
    /** The routing of a dispatch that failed or has not run. */
    HANDLE_INVALID(13, "rank: the dispatch of its handle failed"),
    /** A peer makes a call of another kind. */
    OPERATION_MISMATCH(14, "peer makes the other kind of call"),
    /** A selection that is not the one of the dispatch. */
    SELECTION_CHANGED(15, "rank; token, k, seen = the expert that was not dispatched"),
    /** A rank that is known to be gone was waited for, or one that cannot come because of it. */
    PEER_GONE(16, "rank waited for peer in phase, for `seen` ns in all"),
    /** The routing of a dispatch that left out other ranks than the call does. */
    HANDLE_MASKED(17, "rank: masks have changed since the dispatch of its handle"),
    /** A rank that selects an expert more often than it may have tokens. */
    SELECTED_TOO_OFTEN(18, "rank; k = the expert, seen = how often, expected = the limit");

    private final int value;
    private final String comment;

    FaultCode(int value, String comment) {
        this.value = value;
        this.comment = comment;
    }

    /** The code with that value. */
    public static FaultCode of(int value) {
        for (FaultCode code : values()) {
            if (code.value == value) {
                return code;
            }
        }
        throw new IllegalStateException("kernel status " + value + " has no meaning");
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String comment() {
        return comment;
    }
}
