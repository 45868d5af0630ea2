package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requirePeer;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.LowLatencyFormat;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.LowLatencyWorld;
import java.io.IOException;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/**
 * A rank that fails is known to all at once: the time-out here is so long that only this ends the
 * others' calls, or has them go on without it.
 */
@BackendSuite
public record LowLatencyDepartureConformance(TestBackend backend) implements LowLatencySuite {
    private static final LowLatencyShape SHAPE = new LowLatencyShape(1, 4, 6, 128, 4, 8);
    private static final Duration LONG = Duration.ofHours(1);
    private static final int CULPRIT = 2;

    private void run(boolean masks) {
        LowLatencyWorld whole = SHAPE.world(81);
        LowLatencyWorld rest = SHAPE.without(Set.of(CULPRIT));
        CountDownLatch others = new CountDownLatch(SHAPE.topology().numRanks() - 1);
        SHAPE.run(
                backend,
                builder -> builder.timeout(LONG).maskTimedOutRanks(masks),
                context -> {
                    new LowLatencyRank(context, whole).roundTrip(LowLatencyFormat.BF16);
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() == CULPRIT) {
                        context.communicator().fail(new IOException("disk full"));
                        others.await();
                        return;
                    }
                    try {
                        LowLatencyRank survivor = new LowLatencyRank(context, rest);
                        if (masks) {
                            survivor.roundTrip(LowLatencyFormat.BF16);
                        } else {
                            requireNamed(survivor);
                        }
                    } finally {
                        others.countDown();
                    }
                });
    }

    private static void requireNamed(LowLatencyRank survivor) {
        assertThat(requirePeer(CULPRIT, () -> survivor.dispatch(LowLatencyFormat.BF16)))
                .hasMessageStartingWith("rank 2 failed: java.io.IOException: disk full; rank ");
    }

    @Cases(value = "1, 4", ofThreads = true)
    public void isNamed() {
        run(false);
    }

    @Cases(value = "1, 4", ofThreads = true)
    public void isMasked() {
        run(true);
    }
}
