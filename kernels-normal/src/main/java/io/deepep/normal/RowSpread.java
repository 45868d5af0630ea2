package io.deepep.normal;

import io.deepep.spi.RecordedFacts;
import java.util.Arrays;

/** How the rows of one dispatch spread over the ranks, for observers. */
public final class RowSpread {
    private final int[] sent;
    private final int[] received;
    private final long nvlinkRows;
    private final long rdmaRows;

    /**
     * Of one rank.
     *
     * @param sent [R] this rank's rows at each rank
     * @param received [R] rows of each rank here
     * @param nvlinkRows rows of this rank's tokens that pass over NVLink, on whichever node
     * @param rdmaRows rows of this rank's tokens that pass between nodes
     */
    public RowSpread(int[] sent, int[] received, long nvlinkRows, long rdmaRows) {
        this.sent = sent;
        this.received = received;
        this.nvlinkRows = nvlinkRows;
        this.rdmaRows = rdmaRows;
    }

    /** Reports the dispatch. */
    public void describeDispatch(RecordedFacts facts, int numTokens) {
        facts.tokens(numTokens, Arrays.stream(received).sum())
                .peers(sent, received)
                .links(nvlinkRows, rdmaRows);
    }

    /** Reports a combine, whose rows go back the way of its dispatch. */
    public void describeCombine(RecordedFacts facts, int numTokens) {
        facts.tokens(numTokens, Arrays.stream(sent).sum())
                .peers(/* sent= */ received, /* received= */ sent)
                .links(nvlinkRows, rdmaRows);
    }
}
