package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/**
 * What is left in the queues to a rank that was given up is not waited for. A kernel that waits for
 * it until the time-out fails the queue pair, and the rank says so.
 */
class IbgdaGivenUpTest extends CardCases {
    private static final int LOST = 1;
    private static final int NO_EXPERT = 8;
    private static final Duration TIMEOUT = Duration.ofSeconds(2);

    /** One queue stops for longer than all time-outs of a test: the next that is used. */
    private static final String STOP = "stall 0 60000";

    @Test
    void byTheCallThatGivesItUp() {
        EpTopology topology = Ranks.topology(2, 1);
        NormalWorld world = NormalWorld.of(RoutingSpec.of(2, 16, 8, 4), 256, DType.BF16);
        Ranks.run(
                BufferTestBackends.CUDA_IBGDA,
                topology,
                builder -> builder.normal(world.limits()).timeout(TIMEOUT),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    rank.roundTrip();
                    withoutLost(
                            context,
                            () -> {
                                DeepEpTimeoutException late =
                                        Misbehaviour.requirePeer(LOST, rank::roundTrip);
                                assertThat(late.getSuppressed()).isEmpty();
                            });
                });
    }

    /** With masks: after a call that all see fail, nothing is sent before the earlier has come. */
    @Test
    void byTheCallAfterOneThatFails() {
        LowLatencyShape shape = new LowLatencyShape(2, 1, 8, 256, 4, NO_EXPERT);
        Ranks.run(
                BufferTestBackends.CUDA_IBGDA,
                shape.topology(),
                builder -> {
                    shape.limit(builder);
                    builder.timeout(TIMEOUT).maskTimedOutRanks(true);
                },
                context -> {
                    LowLatencyRank rank = shape.rank(context, 71);
                    rank.roundTrip(LowLatencyFormat.BF16);
                    withoutLost(context, () -> loseAndFail(rank));
                });
    }

    private static void loseAndFail(LowLatencyRank rank) {
        RankContext context = rank.context();
        LowLatencyDispatchPlan plan = rank.plan(LowLatencyFormat.BF16).build();
        rank.call(plan);
        assertThat(context.buffer().queryMask()[LOST]).isEqualTo(1);
        Tensor wrong = context.download(rank.topkIdx());
        wrong.setLong(NO_EXPERT, 2, 1);
        Misbehaviour.requireRouting(
                context.rank(),
                () ->
                        rank.call(
                                LowLatencyDispatchPlan.builder(rank.x(), context.upload(wrong))
                                        .format(LowLatencyFormat.BF16)
                                        .build()),
                "topkIdx[2][1]=" + NO_EXPERT);
        rank.call(plan);
        context.buffer().updateMask(LOST, false);
        assertThat(((RankBuffer) context.buffer()).resources().networkFailure()).isEmpty();
    }

    /** All ranks meet; then one makes no more calls, and what is sent to it stays in a queue. */
    private void withoutLost(RankContext context, Runnable others) {
        context.communicator().barrier(Ranks.TIMEOUT);
        if (context.rank() != LOST) {
            card.faults(STOP);
            others.run();
            card.faults("");
        }
        context.communicator().barrier(Ranks.TIMEOUT);
    }
}
