package io.deepep.testkit.conformance.observation;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.observe.CallFacts;
import io.deepep.observe.ObservedCall;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Observers count nothing of a masked rank: neither rows to it nor rows from it. */
@BackendSuite
public final class MaskObservationConformance implements RankGroup {
    private static final int MASKED = 3;
    private static final LowLatencyShape SHAPE = new LowLatencyShape(1, 4, 12, 256, 6, 8);

    private final Map<Integer, CallFacts> latest = new ConcurrentHashMap<>();

    @Override
    public void limit(Buffer.Builder builder) {
        SHAPE.limit(builder);
        builder.observer(this::note);
    }

    private void note(ObservedCall call) {
        latest.put(call.facts().topology().rank(), call.facts());
    }

    @Cases({"1, 4", "2, 2"})
    public void lowLatencyCalls(RankContext context) {
        if (context.rank() != MASKED) {
            context.buffer().updateMask(MASKED, true);
            LowLatencyRank rank = SHAPE.rest(context, Set.of(MASKED));
            for (boolean preReduced : new boolean[] {false, true}) {
                LowLatencyDispatchResult received = rank.dispatchWeighted(LowLatencyFormat.BF16);
                CallFacts out = latest.get(context.rank());
                requireNothingOfTheMasked(out, out.sentRows());
                if (preReduced) {
                    rank.combinePreReduced(received.handle());
                } else {
                    rank.combine(received.handle(), CombineFormat.BF16);
                }
                CallFacts home = latest.get(context.rank());
                requireNothingOfTheMasked(home, home.receivedRows());
            }
        }
        context.meet();
    }

    /**
     * Requires that all counts are of the other ranks.
     *
     * @param own rows of this rank's tokens at each rank
     */
    private static void requireNothingOfTheMasked(CallFacts facts, long[] own) {
        assertThat(facts.sentRows()[MASKED]).as("rows sent").isZero();
        assertThat(facts.receivedRows()[MASKED]).as("rows received").isZero();
        long elsewhere = Arrays.stream(own).sum() - own[facts.topology().rank()];
        assertThat(facts.nvlinkBytes() + facts.rdmaBytes())
                .as("bytes over links")
                .isEqualTo(elsewhere * facts.rowBytes());
    }
}
