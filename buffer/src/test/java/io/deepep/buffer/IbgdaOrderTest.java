package io.deepep.buffer;

import io.deepep.LowLatencyFormat;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import org.junit.jupiter.api.Test;

/** Writes that come late, after later ones, change nothing. */
class IbgdaOrderTest extends CardCases {
    private static final int NUM_PAIRS = 12;

    /** Far longer than a call takes. */
    private static final int HOLD_MICROS = 150_000;

    /**
     * A rank whose header of a combine is held back begins the next dispatch meanwhile, whose
     * header comes first: it has not forgotten the combine.
     */
    @Test
    void headersOfLaterCallsComeFirst() {
        card.faults("hold " + HOLD_MICROS);
        LowLatencyShape shape = new LowLatencyShape(2, 2, 8, 256, 4, 8);
        Ranks.run(
                BufferTestBackends.CUDA_IBGDA,
                shape.topology(),
                shape::limit,
                context -> {
                    LowLatencyRank rank = shape.raggedRank(context);
                    for (int i = 0; i < NUM_PAIRS; i++) {
                        rank.roundTrip(LowLatencyFormat.FP8);
                    }
                });
    }
}
