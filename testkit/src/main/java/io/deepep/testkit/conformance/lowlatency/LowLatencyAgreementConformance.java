package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireMismatch;
import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.routing.Routing;
import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Low-latency calls that do not fit together, on one rank or between ranks: every rank concerned
 * learns it, after which the buffer still works.
 */
@BackendSuite
public record LowLatencyAgreementConformance(TestBackend backend) implements RankGroup {
    private static final LowLatencyShape SHAPE = LowLatencyMisuses.SHAPE;
    private static final LowLatencyFormat FP8 = LowLatencyFormat.FP8;

    @Override
    public void limit(Buffer.Builder builder) {
        SHAPE.limit(builder);
    }

    private static void requireOrder(ThrowingCallable call, String why) {
        requireRefused(IllegalStateException.class, why, call);
    }

    /** A hook that has run, a third dispatch or combine before the first of them is received. */
    @Test
    public void halvesOutOfOrder(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        Buffer buffer = context.buffer();
        LowLatencyDispatchPlan plan = rank.plan(FP8).receiveHook(true).build();
        LowLatencyDispatchResult first = buffer.lowLatencyDispatch(plan);
        LowLatencyDispatchResult second = buffer.lowLatencyDispatch(plan);
        requireOrder(() -> buffer.lowLatencyDispatch(plan), "receive hook");
        requireOrder(() -> rank.dispatch(FP8), "receive hook");
        requireOrder(() -> second.receiveHook().run(), "in the order of its calls");
        first.receiveHook().run();
        rank.verify(first, FP8);
        requireOrder(() -> first.receiveHook().run(), "has already run; next is dispatch ");
        second.receiveHook().run();
        requireOrder(() -> second.receiveHook().run(), "there is nothing to receive");
        rank.verify(second, FP8);
        LowLatencyCombinePlan home = rank.home(second.handle()).receiveHook(true).build();
        LowLatencyCombineResult one = buffer.lowLatencyCombine(home);
        LowLatencyCombineResult two = buffer.lowLatencyCombine(home);
        requireOrder(() -> buffer.lowLatencyCombine(home), "receive hook");
        requireOrder(() -> rank.combine(second.handle()), "receive hook");
        one.receiveHook().run();
        rank.verify(one);
        two.receiveHook().run();
        requireOrder(() -> two.receiveHook().run(), "there is nothing to receive");
        rank.verify(two);
        rank.roundTrip();
    }

    @ParameterizedTest
    @EnumSource(LowLatencyFormat.class)
    public void differentFormats(LowLatencyFormat others, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        for (LowLatencyFormat own : LowLatencyFormat.values()) {
            if (own != others) {
                LowLatencyFormat format = context.isCulprit() ? own : others;
                LowLatencyDispatchPlan plan = rank.plan(format).build();
                requireMismatch(() -> rank.call(plan), "has " + own, "has " + others);
            }
            rank.roundTrip(own);
        }
    }

    @Test
    public void differentNumbersOfSelections(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        Tensor two = context.upload(HostTensors.allocate(DType.I64, 10, 2));
        Tensor idx = context.isCulprit() ? two : rank.topkIdx();
        requireMismatch(() -> rank.call(rank.planOf(idx)), "numTopk", "2", "3");
        rank.roundTrip();
    }

    /**
     * An expert has maxTokens rows for each source, enough unless tokens name it twice: 10
     * selections fit, of however few tokens, and one more is refused by all, whatever room others
     * leave.
     */
    @Test
    public void expertSelectedMoreOftenThanItHasRows(RankContext context) {
        LowLatencyRank rank =
                new LowLatencyRank(context, LowLatencyWorld.of(crowded(0), SHAPE.limits()));
        Tensor idx = crowded(1).topkIdxTensor(context.rank());
        LowLatencyDispatchPlan tooMany = rank.planOf(context.upload(idx));
        for (int round = 0; round < 2; round++) {
            rank.roundTrip();
            requireRouting(
                    () -> rank.call(tooMany), "expert 5 is selected 11 times", "maxTokens=10");
        }
        rank.roundTrip();
    }

    /** Expert 5 twice for each of 5 tokens of ranks 0 and 1, and for some of the next of rank 1. */
    private static Routing crowded(int more) {
        int[] numTokens = {5, 6, 10, 0};
        long[][][] idx = new long[numTokens.length][][];
        float[][][] weights = new float[numTokens.length][][];
        for (int rank = 0; rank < numTokens.length; rank++) {
            idx[rank] = new long[numTokens[rank]][3];
            weights[rank] = new float[numTokens[rank]][3];
            for (int token = 0; token < numTokens[rank]; token++) {
                int crowd = rank == 2 ? 1 : token < 5 ? 2 : more;
                for (int k = 0; k < 3; k++) {
                    idx[rank][token][k] = k < crowd ? 5 : token % 5;
                    weights[rank][token][k] = 1f / (k + 2);
                }
            }
        }
        return Routing.of(8, 3, idx, weights);
    }

    @ParameterizedTest
    @EnumSource(value = CombineFormat.class, names = "BF16", mode = EnumSource.Mode.EXCLUDE)
    public void differentCombineFormats(CombineFormat other, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyHandle handle = rank.newHandle();
        CombineFormat format = context.isCulprit() ? other : CombineFormat.BF16;
        LowLatencyCombinePlan plan = rank.home(handle).format(format).build();
        requireMismatch(() -> rank.call(plan), other.name(), "BF16");
        rank.combine(handle);
    }

    /** Some ranks sum before they send, the others do not. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void differentReductions(boolean culpritReduces, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyHandle handle = rank.dispatchWeighted(FP8).handle();
        boolean reduces = context.isCulprit() == culpritReduces;
        LowLatencyCombinePlan plan =
                (reduces ? rank.preReduced(handle) : rank.home(handle)).build();
        for (int i = 0; i < 2; i++) {
            requireMismatch(() -> rank.call(plan), "has pre-reduced BF16", "has BF16");
        }
        rank.combine(handle);
        rank.combinePreReduced(handle);
    }

    @ParameterizedTest
    @EnumSource(LowLatencyFormat.class)
    public void weightsOfSomeRanksOnly(LowLatencyFormat format, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyDispatchPlan plan =
                (context.isCulprit() ? rank.plan(format) : rank.weighted(format)).build();
        requireMismatch(() -> rank.call(plan), "has " + format, "has " + format + " with weights");
        rank.combinePreReduced(rank.dispatchWeighted(format).handle());
    }

    /**
     * A pre-reduced combine of other selections than were dispatched, on one rank, is reported on
     * every rank: ranks have summed what was dispatched.
     */
    @ParameterizedTest
    @CsvSource({"-1, false", "-1, true", "0, false", "8, false", "-9223372036854775808, true"})
    public void preReducedCombineOfOtherSelections(long expert, boolean hook, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyHandle handle = rank.dispatchWeighted(FP8).handle();
        // Another expert than before, or none.
        long other = expert == 0 ? anotherExpert(rank) : expert;
        Tensor idx = context.spoiled(rank.topkIdx(), other, 9, 2);
        LowLatencyCombinePlan plan =
                LowLatencyCombinePlan.preReduced(rank.outputs(), idx, handle)
                        .receiveHook(hook)
                        .build();
        for (int i = 0; i < 2; i++) {
            requireRouting(() -> rank.call(plan), "topkIdx[9][2]=" + (expert == 0 ? "" : expert));
        }
        rank.combinePreReduced(handle);
        rank.roundTrip();
        rank.combinePreReduced(rank.dispatchWeighted(FP8).handle());
    }

    private static long anotherExpert(LowLatencyRank rank) {
        return (rank.world().routing().expert(rank.context().rank(), 9, 2) + 1) % 8;
    }

    /**
     * A combine of another selection than was dispatched, on one rank, is reported on every rank:
     * no row of it is combined.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void combineOfOtherSelections(boolean hook, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyHandle handle = rank.newHandle();
        Tensor idx = context.spoiled(rank.topkIdx(), anotherExpert(rank), 9, 2);
        LowLatencyCombinePlan request =
                LowLatencyCombinePlan.builder(rank.outputs(), idx, rank.weights(), handle)
                        .receiveHook(hook)
                        .build();
        for (int i = 0; i < 2; i++) {
            requireRouting(
                    () -> rank.call(request), "topkIdx[9][2]=", "is not what was dispatched");
        }
        rank.combine(handle);
        rank.roundTrip();
    }

    /** A selection that a combine leaves out counts as one without weight. */
    @Test
    public void combineThatLeavesASelectionOut(RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyHandle handle = rank.newHandle();
        Tensor weights = context.download(rank.weights());
        Tensor idx = context.download(rank.topkIdx());
        weights.setFloat(0, 9, 2);
        idx.setLong(-1, 9, 2);
        Tensor weightless = combine(rank, rank.topkIdx(), weights, handle);
        Tensor leftOut = combine(rank, context.upload(idx), weights, handle);
        assertThat(HostTensors.firstDifference(weightless, leftOut)).isEqualTo(-1);
        rank.combine(handle);
    }

    private static Tensor combine(
            LowLatencyRank rank, Tensor topkIdx, Tensor weights, LowLatencyHandle handle) {
        RankContext context = rank.context();
        LowLatencyCombinePlan request =
                LowLatencyCombinePlan.builder(
                                rank.outputs(), topkIdx, context.upload(weights), handle)
                        .build();
        LowLatencyCombineResult result = context.buffer().lowLatencyCombine(request);
        result.event().synchronize();
        return context.download(result.x());
    }

    @Test
    public void combinesOfDifferentDispatches(RankContext context) {
        LowLatencyRank rankA = SHAPE.rank(context, 9);
        LowLatencyRank rankB = SHAPE.rank(context, 10);
        LowLatencyHandle handleA = rankA.newHandle();
        LowLatencyHandle handleB = rankB.newHandle();
        LowLatencyCombinePlan plan =
                (context.isCulprit() ? rankA.home(handleA) : rankB.home(handleB)).build();
        requireMismatch(() -> rankA.call(plan), "dispatch 1", "dispatch 2");
        rankA.combine(handleA);
        rankB.combine(handleB);
    }

    /** Selections of a combine that are no experts, on one rank, are reported on every rank. */
    @ParameterizedTest
    @ValueSource(longs = {8, -2, 1L << 32, Long.MAX_VALUE, Long.MIN_VALUE})
    public void combineOfExpertsOutOfRange(long expert, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        LowLatencyHandle handle = rank.newHandle();
        Tensor idx = context.spoiled(rank.topkIdx(), expert, 9, 2);
        LowLatencyCombinePlan plan =
                LowLatencyCombinePlan.builder(rank.outputs(), idx, rank.weights(), handle).build();
        for (int i = 0; i < 2; i++) {
            requireRouting(() -> rank.call(plan), "=" + expert);
        }
        rank.combine(handle);
        rank.roundTrip();
    }

    /**
     * One rank sends a call and makes the next one, of the other kind, before it receives the
     * first; the others make only the second. They skip the first, and that rank must not count its
     * second call again.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void differentOperationsBetweenTheHalves(boolean combinesFirst, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        Duration timeout = Ranks.TIMEOUT.dividedBy(4);
        LowLatencyHandle handle = rank.newHandle();
        LowLatencyDispatchPlan dispatch =
                rank.plan(FP8)
                        .receiveHook(context.isCulprit() && !combinesFirst)
                        .timeout(timeout)
                        .build();
        LowLatencyCombinePlan combine =
                rank.home(handle)
                        .receiveHook(context.isCulprit() && combinesFirst)
                        .timeout(timeout)
                        .build();
        Runnable hook = null;
        if (context.isCulprit()) {
            hook =
                    combinesFirst
                            ? context.buffer().lowLatencyCombine(combine).receiveHook()
                            : context.buffer().lowLatencyDispatch(dispatch).receiveHook();
        } else {
            requireMismatch(
                    () -> rank.call(combinesFirst ? dispatch : combine), "dispatch", "combine");
        }
        context.meet();
        if (context.isCulprit()) {
            if (combinesFirst) {
                rank.dispatch(dispatch);
            } else {
                rank.combine(combine);
            }
            requireMismatch(hook::run, "dispatch", "combine");
        }
        context.meet();
        rank.roundTrip();
        rank.roundTrip();
    }

    /**
     * Some ranks combine while the others dispatch, with and without hooks. Over a network this is
     * known after half of the time-out, in which the headers of the calls may overtake each other.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void differentOperations(boolean hook, RankContext context) {
        LowLatencyRank rank = SHAPE.rank(context, 9);
        Duration timeout = Ranks.TIMEOUT.dividedBy(4); // for each of the sets
        // Every set of ranks but none and all.
        for (int combining = 1; combining < 15; combining++) {
            boolean combines = (combining >> context.rank() & 1) == 1;
            LowLatencyHandle handle = rank.newHandle();
            LowLatencyDispatchPlan dispatch =
                    rank.plan(FP8).receiveHook(hook).timeout(timeout).build();
            LowLatencyCombinePlan combine =
                    rank.home(handle).receiveHook(hook).timeout(timeout).build();
            requireMismatch(() -> rank.call(combines ? combine : dispatch), "dispatch", "combine");
            rank.combine(handle);
            rank.roundTrip();
        }
    }
}
