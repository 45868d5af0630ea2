package io.deepep.testkit.conformance.lowlatency;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.LowLatencyWorld;
import java.time.Duration;
import java.util.Set;
import java.util.function.BiPredicate;
import java.util.function.Consumer;

/** Ranks that are masked, dead or late. */
@BackendSuite
@BesideOthers
public record LowLatencyMaskConformance(TestBackend backend) implements RankGroup {
    private static final LowLatencyShape SHAPE = new LowLatencyShape(1, 4, 6, 128, 4, 8);
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;
    private static final int DEAD = 2;
    private static final Set<Integer> OTHERS = Set.of(0, 1, 3);

    @Override
    public void limit(Buffer.Builder builder) {
        SHAPE.limit(builder);
    }

    private static LowLatencyRank losing(RankContext context, BiPredicate<Integer, Integer> lost) {
        return new LowLatencyRank(
                context,
                context.shared(
                        "losing",
                        _ ->
                                LowLatencyWorld.of(
                                        SHAPE.spec(),
                                        SHAPE.limits(),
                                        routing -> routing.without(lost))));
    }

    /** A masked rank is neither sent to nor waited for; back again, it takes part. */
    @Cases(from = "few")
    public void maskedRank(LowLatencyShape shape, RankContext context) {
        leaveOutTheLast(
                shape,
                context,
                rank -> {
                    rank.roundTrip();
                    rank.combine(rank.dispatch(BF16).handle(), CombineFormat.FP8);
                });
    }

    /** Pairs of all ranks, of all but the last, then of all again. */
    static void leaveOutTheLast(
            LowLatencyShape shape, RankContext context, Consumer<LowLatencyRank> pair) {
        int dead = shape.topology().numRanks() - 1;
        LowLatencyRank rank = shape.rank(context, 51);
        pair.accept(rank);
        pair.accept(rank);
        if (context.rank() != dead) {
            context.mask(Set.of(dead));
            LowLatencyRank survivor = shape.rest(context, Set.of(dead), 52);
            for (int i = 0; i < 3; i++) {
                pair.accept(survivor);
            }
        }
        context.buffer().rejoin();
        context.requireMasked(Set.of());
        pair.accept(rank);
    }

    /**
     * Ranks were masked when tokens went out and are back when the results are combined: they send
     * nothing for them, so they must not be counted with what an earlier combine left in their
     * slots.
     */
    @Cases("1, 4")
    public void unmaskedBetweenDispatchAndCombine(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 53);
        boolean dead = context.rank() == DEAD;
        Set<Integer> unheard = dead ? OTHERS : Set.of(DEAD);
        LowLatencyRank masking = SHAPE.rest(context, unheard);
        Buffer buffer = context.buffer();
        for (int round = 0; round < 3; round++) {
            // Leaves rows in the slots of both parities.
            rank.roundTrip(BF16);
            rank.roundTrip(BF16);
            unheard.forEach(peer -> buffer.updateMask(peer, true));
            LowLatencyDispatchResult result = masking.dispatch(BF16);
            unheard.forEach(peer -> buffer.updateMask(peer, false));
            masking.combine(result.handle());
        }
        rank.roundTrip(BF16);
    }

    /** The same between the halves of either call, whose headers were not sent to them. */
    @Cases("1, 4")
    public void unmaskedBetweenTheHalves(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 57);
        Set<Integer> unheard = context.rank() == DEAD ? OTHERS : Set.of(DEAD);
        LowLatencyRank masking = SHAPE.rest(context, unheard);
        LowLatencyDispatchPlan plan = masking.plan(BF16).receiveHook(true).build();
        Buffer buffer = context.buffer();
        for (int round = 0; round < 2; round++) {
            rank.roundTrip(BF16);
            unheard.forEach(peer -> buffer.updateMask(peer, true));
            LowLatencyDispatchResult result = buffer.lowLatencyDispatch(plan);
            unheard.forEach(peer -> buffer.updateMask(peer, false));
            result.receiveHook().run();
            masking.verify(result, BF16);
            unheard.forEach(peer -> buffer.updateMask(peer, true));
            LowLatencyCombineResult home = masking.sendHome(result.handle());
            unheard.forEach(peer -> buffer.updateMask(peer, false));
            home.receiveHook().run();
            masking.verify(home);
        }
        rank.roundTrip(BF16);
    }

    /** Only a receiver had masked: the source sent its tokens, but nobody computed on them. */
    @Cases("1, 4")
    public void tokensThatTheReceiverDidNotTake(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 54);
        LowLatencyRank some = losing(context, (src, peer) -> src == DEAD && peer == 0);
        LowLatencyDispatchPlan plan = some.plan(BF16).receiveHook(true).build();
        Buffer buffer = context.buffer();
        for (int round = 0; round < 3; round++) {
            // Leaves rows in the slots of both parities.
            rank.roundTrip(BF16);
            rank.roundTrip(BF16);
            LowLatencyDispatchResult result = buffer.lowLatencyDispatch(plan);
            buffer.updateMask(DEAD, context.rank() == 0);
            result.receiveHook().run();
            buffer.updateMask(DEAD, false);
            some.verify(result, BF16);
            some.combine(result.handle());
        }
        rank.roundTrip(BF16);
    }

    private void runMaskingTimedOut(Ranks.Body body) {
        SHAPE.run(
                backend(),
                builder -> builder.timeout(Duration.ofSeconds(2)).maskTimedOutRanks(true),
                context -> {
                    LowLatencyRank rank = SHAPE.rank(context, 55);
                    rank.roundTrip(BF16);
                    body.run(context);
                    // One is out of step until all have met.
                    context.meet();
                    context.buffer().rejoin();
                    context.requireMasked(Set.of());
                    rank.roundTrip();
                });
    }

    /**
     * With masking on, a rank that stops in the middle of a loop is masked, and the others go on
     * without it.
     */
    @Cases("1, 4")
    public void timedOutRankIsMasked() {
        runMaskingTimedOut(LowLatencyMaskConformance::goOnWithoutTheDead);
    }

    private static void goOnWithoutTheDead(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 55);
        for (int round = 0; round < 6; round++) {
            rank.roundTrip(BF16);
        }
        if (context.rank() != DEAD) {
            LowLatencyRank survivor = SHAPE.rest(context, Set.of(DEAD));
            survivor.dispatch(BF16);
            context.requireMasked(Set.of(DEAD));
            for (int round = 0; round < 5; round++) {
                survivor.roundTrip();
            }
        }
    }

    /** A rank dies with tokens on it: they are combined without what its experts owe. */
    @Cases("1, 4")
    public void timedOutInCombine() {
        runMaskingTimedOut(LowLatencyMaskConformance::combineWithoutTheDead);
    }

    private static void combineWithoutTheDead(RankContext context) {
        LowLatencyRank rank = losing(context, (src, peer) -> peer == DEAD);
        if (context.rank() == DEAD) {
            context.buffer().lowLatencyDispatch(rank.plan(BF16).build());
        } else {
            LowLatencyHandle handle = rank.dispatch(BF16).handle();
            rank.combine(handle);
            context.requireMasked(Set.of(DEAD));
            LowLatencyRank survivor = SHAPE.rest(context, Set.of(DEAD));
            for (int round = 0; round < 3; round++) {
                survivor.roundTrip(BF16);
            }
        }
    }
}
