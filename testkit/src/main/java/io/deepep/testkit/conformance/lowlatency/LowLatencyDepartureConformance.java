package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requirePeer;
import static io.deepep.testkit.conformance.Misbehaviour.whileGone;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import java.time.Duration;
import java.util.Set;
import java.util.function.Consumer;

/**
 * A rank that fails is known to all at once: the time-out here is so long that only this ends the
 * others' calls, or has them go on without it.
 */
@BackendSuite
public record LowLatencyDepartureConformance(TestBackend backend) {
    private static final LowLatencyShape SHAPE = new LowLatencyShape(1, 4, 6, 128, 4, 8);
    private static final int LEAVING = 2;

    private void run(boolean masks, Consumer<LowLatencyRank> others) {
        SHAPE.run(
                backend,
                builder -> builder.timeout(Duration.ofHours(1)).maskTimedOutRanks(masks),
                context -> {
                    SHAPE.rank(context, 81).roundTrip();
                    LowLatencyRank survivor = SHAPE.rest(context, Set.of(LEAVING));
                    whileGone(context, LEAVING, Misbehaviour::fail, _ -> others.accept(survivor));
                });
    }

    @Cases(value = "1, 4", ofThreads = true)
    public void isNamed() {
        run(
                false,
                survivor ->
                        assertThat(requirePeer(LEAVING, survivor::roundTrip))
                                .hasMessageStartingWith(
                                        "rank 2 failed: java.io.IOException: disk full; rank "));
    }

    @Cases(value = "1, 4", ofThreads = true)
    public void isMasked() {
        run(true, LowLatencyRank::roundTrip);
    }
}
