package io.deepep.testkit.oracle;

/**
 * Where a received row comes from.
 *
 * @param srcRank the rank that dispatched the token
 * @param token its index there
 * @param selection which of the token's selections it is; -1 if the row stands for all of them
 */
public record SourceRow(int srcRank, int token, int selection) {
    /** What an expert's rows are padded with. */
    public static final SourceRow PADDING = new SourceRow(-1, -1, -1);

    /** Whether the row is padding. */
    public boolean isPadding() {
        return srcRank < 0;
    }
}
