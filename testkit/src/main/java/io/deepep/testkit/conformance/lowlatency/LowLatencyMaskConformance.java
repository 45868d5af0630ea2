package io.deepep.testkit.conformance.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.oracle.LowLatencyOracle;
import java.time.Duration;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.params.provider.MethodSource;

/** Ranks that are masked, dead or late. */
@BackendSuite
public record LowLatencyMaskConformance(TestBackend backend) implements LowLatencySuite {
    private static final LowLatencyShape SHAPE = new LowLatencyShape(1, 4, 6, 128, 4, 8);
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;
    private static final int DEAD = 2;
    private static final Set<Integer> OTHERS = Set.of(0, 1, 3);

    private static LowLatencyWorld losing(LowLatencyOracle.Lost lost) {
        return LowLatencyWorld.losing(lost, SHAPE.spec(), SHAPE.limits());
    }

    /**
     * A masked rank is neither sent to nor waited for; unmasked and cleaned, it takes part again.
     */
    @Cases
    @MethodSource(FEW)
    public void maskedRank(LowLatencyShape shape) {
        leaveOutTheLast(this, shape, rank -> rank.roundTrip(LowLatencyFormat.FP8));
    }

    /** Pairs of all ranks, of all but the last, then of all again. */
    static void leaveOutTheLast(
            LowLatencySuite suite, LowLatencyShape shape, Consumer<LowLatencyRank> pair) {
        int dead = shape.topology().numRanks() - 1;
        LowLatencyWorld whole = shape.world(51);
        LowLatencyWorld rest =
                LowLatencyWorld.without(Set.of(dead), shape.spec().withSeed(52), shape.limits());
        suite.run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, whole);
                    Buffer buffer = context.buffer();
                    pair.accept(rank);
                    pair.accept(rank);
                    if (context.rank() != dead) {
                        buffer.lowLatencyUpdateMask(dead, true);
                        assertThat(buffer.lowLatencyQueryMask()[dead]).isEqualTo(1);
                        LowLatencyRank survivor = new LowLatencyRank(context, rest);
                        for (int i = 0; i < 3; i++) {
                            pair.accept(survivor);
                        }
                        buffer.lowLatencyCleanMask();
                    }
                    assertThat(buffer.lowLatencyQueryMask()).containsOnly(0);
                    buffer.cleanLowLatencyBuffer();
                    pair.accept(rank);
                });
    }

    /**
     * Ranks were masked when tokens went out and are back when the results come home: they send
     * nothing for them, so they must not be counted with what an earlier combine left in their
     * slots.
     */
    @Cases
    @GroupSource("1, 4")
    public void unmaskedBetweenDispatchAndCombine() {
        LowLatencyWorld whole = SHAPE.world(53);
        LowLatencyWorld rest = LowLatencyWorld.without(Set.of(DEAD), SHAPE.spec(), SHAPE.limits());
        LowLatencyWorld alone = LowLatencyWorld.without(OTHERS, SHAPE.spec(), SHAPE.limits());
        run(
                SHAPE,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, whole);
                    boolean dead = context.rank() == DEAD;
                    LowLatencyRank masking = new LowLatencyRank(context, dead ? alone : rest);
                    Set<Integer> unheard = dead ? OTHERS : Set.of(DEAD);
                    Buffer buffer = context.buffer();
                    for (int round = 0; round < 3; round++) {
                        // Leaves rows in the slots of both parities.
                        rank.roundTrip(BF16);
                        rank.roundTrip(BF16);
                        unheard.forEach(peer -> buffer.lowLatencyUpdateMask(peer, true));
                        LowLatencyDispatchResult result = masking.dispatch(BF16);
                        unheard.forEach(peer -> buffer.lowLatencyUpdateMask(peer, false));
                        masking.combine(result.handle());
                    }
                    rank.roundTrip(BF16);
                });
    }

    /** Only a receiver had masked: the source sent its tokens, but nobody computed on them. */
    @Cases
    @GroupSource("1, 4")
    public void tokensThatTheReceiverDidNotTake() {
        LowLatencyWorld whole = SHAPE.world(54);
        LowLatencyWorld partly = losing((src, rank) -> src == DEAD && rank == 0);
        run(
                SHAPE,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, whole);
                    LowLatencyRank some = new LowLatencyRank(context, partly);
                    LowLatencyDispatchPlan plan = some.plan(BF16).receiveHook(true).build();
                    Buffer buffer = context.buffer();
                    for (int round = 0; round < 3; round++) {
                        // Leaves rows in the slots of both parities.
                        rank.roundTrip(BF16);
                        rank.roundTrip(BF16);
                        LowLatencyDispatchResult result = buffer.lowLatencyDispatch(plan);
                        buffer.lowLatencyUpdateMask(DEAD, context.rank() == 0);
                        result.receiveHook().run();
                        buffer.lowLatencyUpdateMask(DEAD, false);
                        some.verify(result, BF16);
                        some.combine(result.handle());
                    }
                    rank.roundTrip(BF16);
                });
    }

    private void runMaskingTimedOut(Ranks.Body body) {
        Ranks.run(
                backend(),
                SHAPE.topology(),
                builder ->
                        builder.lowLatency(SHAPE.limits())
                                .timeout(Duration.ofSeconds(2))
                                .maskTimedOutRanks(true),
                body);
    }

    /** Takes back a rank that is out of step: once all have met, a clean, then the mask. */
    private static void rejoin(RankContext context) {
        context.communicator().barrier(Ranks.TIMEOUT);
        context.buffer().cleanLowLatencyBuffer();
        context.buffer().lowLatencyCleanMask();
        assertThat(context.buffer().lowLatencyQueryMask()).containsOnly(0);
    }

    /**
     * With masking on, a rank that stops in the middle of a loop is masked, and the others go on
     * without it.
     */
    @Cases
    @GroupSource("1, 4")
    public void timedOutRankIsMasked() {
        LowLatencyWorld whole = SHAPE.world(55);
        LowLatencyWorld rest = LowLatencyWorld.without(Set.of(DEAD), SHAPE.spec(), SHAPE.limits());
        runMaskingTimedOut(
                context -> {
                    for (int round = 0; round < 7; round++) {
                        new LowLatencyRank(context, whole).roundTrip(BF16);
                    }
                    if (context.rank() != DEAD) {
                        LowLatencyRank survivor = new LowLatencyRank(context, rest);
                        survivor.dispatch(BF16);
                        assertThat(context.buffer().lowLatencyQueryMask())
                                .containsExactly(0, 0, 1, 0);
                        for (int round = 0; round < 5; round++) {
                            survivor.roundTrip(LowLatencyFormat.FP8);
                        }
                    }
                    rejoin(context);
                    new LowLatencyRank(context, whole).roundTrip(LowLatencyFormat.FP8);
                });
    }

    /** A rank dies with tokens on it: they come home without what its experts owe. */
    @Cases
    @GroupSource("1, 4")
    public void timedOutInCombine() {
        LowLatencyWorld whole = SHAPE.world(56);
        LowLatencyWorld owing = losing((src, rank) -> rank == DEAD);
        LowLatencyWorld rest = LowLatencyWorld.without(Set.of(DEAD), SHAPE.spec(), SHAPE.limits());
        runMaskingTimedOut(
                context -> {
                    new LowLatencyRank(context, whole).roundTrip(BF16);
                    LowLatencyRank rank = new LowLatencyRank(context, owing);
                    if (context.rank() == DEAD) {
                        context.buffer().lowLatencyDispatch(rank.plan(BF16).build());
                    } else {
                        LowLatencyHandle handle = rank.dispatch(BF16).handle();
                        rank.combine(handle);
                        assertThat(context.buffer().lowLatencyQueryMask())
                                .containsExactly(0, 0, 1, 0);
                        LowLatencyRank survivor = new LowLatencyRank(context, rest);
                        for (int round = 0; round < 3; round++) {
                            survivor.roundTrip(BF16);
                        }
                    }
                    rejoin(context);
                    new LowLatencyRank(context, whole).roundTrip(LowLatencyFormat.FP8);
                });
    }
}
