package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import java.util.function.Function;

/**
 * Send and receive halves in the orders that hooks allow, and two results alive. Part of {@link
 * LowLatencyConformance}.
 */
@BackendSuite
public record LowLatencyFlightConformance(TestBackend backend) {
    /**
     * Two batches in flight: the second is sent before the first is received, in dispatch and in
     * combine.
     */
    @Cases(from = "few")
    public void twoInFlight(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rankA = shape.rank(context, 31);
        LowLatencyRank rankB = shape.rank(context, 32);
        LowLatencyFormat format = LowLatencyFormat.FP8;
        LowLatencyDispatchPlan planA = rankA.plan(format).receiveHook(true).build();
        LowLatencyDispatchPlan planB = rankB.plan(format).receiveHook(true).build();
        Batch first = new Batch(rankA, planA, rankA::home);
        Batch second = new Batch(rankB, planB, rankB::home);
        for (int round = 0; round < 5; round++) {
            fly(context.buffer(), first, second);
        }
    }

    /**
     * One of two batches in flight.
     *
     * @param plan with a hook
     * @param home how it is combined
     */
    record Batch(
            LowLatencyRank rank,
            LowLatencyDispatchPlan plan,
            Function<LowLatencyHandle, LowLatencyCombinePlan.Builder> home) {
        /** Receives what was dispatched and sends it home; what is returned receives that. */
        private Runnable turn(Buffer buffer, LowLatencyDispatchResult out) {
            out.receiveHook().run();
            rank.verify(out, plan.format());
            LowLatencyCombinePlan back = home.apply(out.handle()).receiveHook(true).build();
            LowLatencyCombineResult sent = buffer.lowLatencyCombine(back);
            return () -> {
                sent.receiveHook().run();
                rank.verify(sent, back);
            };
        }
    }

    /** Sends each half of the second before that of the first is received; its handle. */
    static LowLatencyHandle fly(Buffer buffer, Batch first, Batch second) {
        LowLatencyDispatchResult outA = buffer.lowLatencyDispatch(first.plan());
        LowLatencyDispatchResult outB = buffer.lowLatencyDispatch(second.plan());
        Runnable homeA = first.turn(buffer, outA);
        Runnable homeB = second.turn(buffer, outB);
        homeA.run();
        homeB.run();
        return outB.handle();
    }

    /**
     * The later of two is received first. Some ranks do so and some do not, and the fast ones must
     * not overwrite what the slow ones have still to read.
     */
    @Cases(from = "few")
    public void receivedInAnyOrder(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rankA = shape.rank(context, 35);
        LowLatencyRank rankB = shape.rank(context, 36);
        LowLatencyFormat format = LowLatencyFormat.BF16;
        LowLatencyDispatchPlan planA = rankA.plan(format).receiveHook(true).build();
        LowLatencyDispatchPlan planB = rankB.plan(format).receiveHook(true).build();
        Buffer buffer = context.buffer();
        for (int round = 0; round < 20; round++) {
            boolean swap = (round + context.rank()) % 3 != 0;
            LowLatencyDispatchResult outA = buffer.lowLatencyDispatch(planA);
            LowLatencyDispatchResult outB = buffer.lowLatencyDispatch(planB);
            (swap ? outB : outA).receiveHook().run();
            (swap ? outA : outB).receiveHook().run();
            rankA.verify(outA, format);
            rankB.verify(outB, format);
            LowLatencyCombineResult homeA = rankA.sendHome(outA.handle());
            LowLatencyCombineResult homeB = rankB.sendHome(outB.handle());
            (swap ? homeB : homeA).receiveHook().run();
            (swap ? homeA : homeB).receiveHook().run();
            rankA.verify(homeA);
            rankB.verify(homeB);
        }
    }

    /** The later of two is received first, and the next call of the kind follows at once. */
    @Cases(from = "few")
    public void sentAgainAfterReceivingTheLaterFirst(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.rank(context, 39);
        LowLatencyFormat format = LowLatencyFormat.FP8;
        Buffer buffer = context.buffer();
        LowLatencyDispatchPlan plan = rank.plan(format).receiveHook(true).build();
        LowLatencyDispatchPlan another = rank.plan(format).receiveHook(true).build();
        for (int round = 0; round < 3; round++) {
            LowLatencyDispatchResult first = buffer.lowLatencyDispatch(plan);
            LowLatencyDispatchResult second = buffer.lowLatencyDispatch(another);
            second.receiveHook().run();
            first.receiveHook().run();
            LowLatencyDispatchResult next = rank.dispatch(format);
            rank.verify(second, format); // the memory of the first is that of the next
            LowLatencyCombineResult one = rank.sendHome(next.handle());
            LowLatencyCombineResult two = rank.sendHome(next.handle());
            two.receiveHook().run();
            one.receiveHook().run();
            rank.combine(next.handle());
            rank.verify(one);
            rank.verify(two);
        }
    }

    /** A handle whose combine was refused is still that of its dispatch, and not of a later one. */
    @Cases(from = "few")
    public void refusedCombine(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.rank(context, 40);
        LowLatencyHandle other = rank.newHandle();
        LowLatencyDispatchPlan plan = rank.plan(LowLatencyFormat.BF16).build();
        LowLatencyCombineResult one = rank.sendHome(other);
        LowLatencyCombineResult two = rank.sendHome(other);
        LowLatencyHandle handle = rank.dispatch(plan).handle();
        LowLatencyCombinePlan home = rank.home(handle).build();
        requireRefused(
                IllegalStateException.class,
                "has been sent but not received",
                () -> context.buffer().lowLatencyCombine(home));
        one.receiveHook().run();
        two.receiveHook().run();
        rank.dispatch(plan);
        rank.dispatch(plan);
        requireRefused(
                IllegalArgumentException.class,
                "its memory now holds",
                () -> context.buffer().lowLatencyCombine(home));
    }

    /** A combine is received after its dispatch's memory has been used again. */
    @Cases(from = "few")
    public void combineReceivedAfterTheSecondNextDispatch(
            LowLatencyShape shape, RankContext context) {
        LowLatencyRank rankA = shape.rank(context, 37);
        LowLatencyRank rankB = shape.rank(context, 38);
        LowLatencyDispatchResult out = rankA.dispatch(LowLatencyFormat.FP8);
        LowLatencyCombineResult home = rankA.sendHome(out.handle());
        rankB.dispatch(LowLatencyFormat.FP8);
        rankB.dispatch(LowLatencyFormat.FP8);
        home.receiveHook().run();
        rankA.verify(home);
    }

    /** Results and handle of a dispatch survive one more dispatch; the second next ends them. */
    @Cases(from = "few")
    public void resultsLiveForTwoDispatches(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rankA = shape.rank(context, 33);
        LowLatencyRank rankB = shape.rank(context, 34);
        LowLatencyDispatchResult first = rankA.dispatch(LowLatencyFormat.BF16);
        LowLatencyDispatchResult second = rankB.dispatch(LowLatencyFormat.FP8);
        rankA.verify(first, LowLatencyFormat.BF16);
        rankB.combine(second.handle());
        rankA.combine(first.handle());
    }

    /**
     * Cleaning ends what an engine abandoned midway: its sends are not taken for later ones, its
     * hooks and its handle are refused; its plans can be used again.
     */
    @Cases(from = "few")
    public void cleaning(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.rank(context, 41);
        LowLatencyRank loser = shape.rank(context, 42);
        Buffer buffer = context.buffer();
        LowLatencyDispatchPlan plan = loser.plan(LowLatencyFormat.FP8).receiveHook(true).build();
        for (int round = 0; round < 3; round++) {
            rank.roundTrip();
            LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.BF16);
            LowLatencyCombineResult home = rank.sendHome(result.handle());
            LowLatencyDispatchResult lost = buffer.lowLatencyDispatch(plan);
            buffer.cleanLowLatencyBuffer();
            String gone = "was discarded by cleanLowLatencyBuffer, rejoin or admit";
            requireRefused(
                    IllegalStateException.class,
                    "there is nothing to receive",
                    home.receiveHook()::run);
            requireRefused(IllegalStateException.class, gone, lost.receiveHook()::run);
            LowLatencyCombinePlan late = loser.home(lost.handle()).build();
            assertThatThrownBy(() -> buffer.lowLatencyCombine(late))
                    .isInstanceOfAny(IllegalArgumentException.class, IllegalStateException.class);
            LowLatencyDispatchResult again = buffer.lowLatencyDispatch(plan);
            requireRefused(IllegalStateException.class, gone, lost.receiveHook()::run);
            again.receiveHook().run();
            loser.verify(again, LowLatencyFormat.FP8);
            rank.roundTrip(LowLatencyFormat.BF16);
        }
    }
}
