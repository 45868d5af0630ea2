package io.deepep.spi;

/** The failures of a call; in kernels, {@code Code}. */
public enum FaultCode implements KernelEnum {
    /** No failure. */
    OK(""),
    /** A selection that is neither -1 nor an expert. */
    EXPERT_OUT_OF_RANGE("rank; token, k, seen = the expert"),
    /** The ranks' calls differ in a word of their headers. */
    HEADER_MISMATCH(
            "rank; k = index of the header word, expected = that of peer, seen = that rank's"),
    /** More rows than a receiver has room for. */
    TOO_MANY_ROWS("rank = receiver; expected = its limit, seen = rows"),
    /** A peer did not come. */
    TIMEOUT("rank waited for peer in phase; expected, seen = flag words"),
    /** A peer gave up this call before this rank noticed the reason itself. */
    PEER_ABORTED("seen = peer's code, k = the rank that it gave up on"),
    /** A peer has gone on to later calls. */
    OUT_OF_STEP("peer is ahead: expected, seen = epochs"),
    /** More expanded rows than a receiver has room for. */
    TOO_MANY_EXPANDED("rank = receiver; expected = its limit, seen = rows"),
    /** A handle that names rows that their rank does not offer. */
    ROW_OUT_OF_RANGE("this rank only: peer offers `expected` rows, the handle names row `seen`"),
    /** The blocks of a launch waited for a block that could not start. */
    GRID_NOT_RESIDENT("the blocks of one launch did not run together"),
    /** A layout whose mask is not that of the selections. */
    LAYOUT_MASK("rank; token, k = receiver, seen = what the layout says"),
    /** A layout that miscounts the tokens to a rank. */
    LAYOUT_RANK_COUNT("rank; token = receiver, k = what the layout says, seen = what it is"),
    /** A layout that miscounts the selections of an expert. */
    LAYOUT_EXPERT_COUNT("rank; token = expert, k = what the layout says, seen = what it is"),
    /** The routing of a dispatch that failed or has not run. */
    HANDLE_INVALID("rank: the dispatch of its handle failed"),
    /** A peer makes another kind of call. */
    OPERATION_MISMATCH("peer makes the other kind of call"),
    /** A selection that is not the one of the dispatch. */
    SELECTION_CHANGED("rank; token, k, seen = the expert that was not dispatched"),
    /** This rank waited for a rank that is gone, or for one that cannot come because of it. */
    PEER_GONE("rank waited for peer in phase, for `seen` ns in all"),
    /** The routing of a dispatch with other masks than those of the call. */
    HANDLE_MASKED("rank: masks have changed since the dispatch of its handle"),
    /** A rank that selects an expert more often than {@code maxTokens}. */
    SELECTED_TOO_OFTEN("rank; k = the expert, seen = how often, expected = the limit");

    /** Kept: calls look codes up while they wait, and each {@code values()} is a new array. */
    private static final FaultCode[] BY_VALUE = values();

    private final String comment;

    FaultCode(String comment) {
        this.comment = comment;
    }

    /** The code with the given value. */
    public static FaultCode of(int value) {
        if (value < 0 || value >= BY_VALUE.length) {
            throw new IllegalStateException("kernel status " + value + " is unknown");
        }
        return BY_VALUE[value];
    }

    @Override
    public String comment() {
        return comment;
    }
}
