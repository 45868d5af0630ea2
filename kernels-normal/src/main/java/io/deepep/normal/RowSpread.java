package io.deepep.normal;

import io.deepep.spi.RecordedFacts;
import java.util.Arrays;

/**
 * How the rows of one dispatch spread over the ranks, for observers.
 *
 * @param sent [R] this rank's rows at each rank
 * @param received [R] rows of each rank here
 * @param nvlinkRows rows of this rank's tokens that pass over NVLink, on whichever node
 * @param rdmaRows rows of this rank's tokens that pass between nodes
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record RowSpread(int[] sent, int[] received, long nvlinkRows, long rdmaRows) {
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
