package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.lowlatency.LowLatencyFlightConformance.fly;
import static io.deepep.testkit.conformance.lowlatency.LowLatencyMaskConformance.leaveOutTheLast;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.lowlatency.LowLatencyFlightConformance.Batch;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.List;

/** Combines in which ranks sum a token's rows before they send them, bit for bit. */
@BackendSuite
public record LowLatencyPreReducedConformance(TestBackend backend) {
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;
    private static final LowLatencyFormat FP8 = LowLatencyFormat.FP8;

    /** All ways to combine one dispatch, then a pair without weights. */
    @Cases(from = "all")
    public void preReduced(LowLatencyShape shape, RankContext context) {
        for (RoutingSpec spec : new RoutingSpec[] {shape.raggedSpec(), shape.spec()}) {
            LowLatencyRank rank = shape.rank(context, spec);
            LowLatencyHandle handle = rank.dispatchWeighted(FP8).handle();
            rank.combinePreReduced(handle);
            rank.combinePreReduced(handle, CombineFormat.LOGFMT);
            rank.combinePreReduced(handle, CombineFormat.FP8);
            rank.combine(handle);
            rank.roundTrip(BF16);
            rank.combinePreReduced(rank.dispatchWeighted(BF16).handle());
        }
    }

    /** All rows of a token at one rank; more of them than are read at once. */
    @Cases(from = "selectionsOfOneRank")
    public void preReducedAtOneRank(LowLatencyShape shape, RankContext context) {
        Gate atOneRank = new Gate.GroupLimited(shape.topology().numRanks(), 1, false);
        RoutingSpec crowded = shape.spec().withGate(atOneRank);
        for (RoutingSpec spec : new RoutingSpec[] {crowded, shape.raggedSpec()}) {
            LowLatencyRank rank = shape.rank(context, spec);
            LowLatencyHandle handle = rank.dispatchWeighted(FP8).handle();
            rank.combinePreReduced(handle);
            rank.combinePreReduced(handle, CombineFormat.FP8);
        }
    }

    /** Some ranks have few tokens, whose sums travel in another way than those of many. */
    @Cases(from = "fewAndManyTokens")
    public void preReducedForFewAndManyTokens(LowLatencyShape shape, RankContext context) {
        Gate atOneRank = new Gate.GroupLimited(shape.topology().numRanks(), 1, false);
        RoutingSpec crowded = shape.spec().withGate(atOneRank).withVaryingTokens(true);
        for (int seed = 0; seed < 4; seed++) {
            LowLatencyRank rank = shape.rank(context, crowded.withSeed(seed));
            LowLatencyHandle handle = rank.dispatchWeighted(BF16).handle();
            for (CombineFormat format : List.of(CombineFormat.BF16, CombineFormat.FP8)) {
                rank.combine(rank.preReduced(handle).format(format).numSms(5 + seed % 5));
                rank.combinePreReduced(handle, format);
            }
        }
    }

    /** As many tokens as the mode allows, and any number of multiprocessors. */
    @Cases(from = "mostTokens")
    public void preReducedWithMostTokens(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        for (int sms = 1; sms < 8; sms += 3) {
            LowLatencyDispatchPlan plan = rank.weighted(BF16).numSms(sms).build();
            rank.combine(rank.preReduced(rank.dispatch(plan).handle()).numSms(8 - sms));
        }
    }

    /** Two batches in flight, one combined by selections and one by ranks. */
    @Cases(from = "few")
    public void preReducedWithHooks(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rankA = shape.rank(context, 61);
        LowLatencyRank rankB = shape.raggedRank(context);
        LowLatencyDispatchPlan planA = rankA.weighted(FP8).receiveHook(true).build();
        LowLatencyDispatchPlan planB = rankB.weighted(FP8).receiveHook(true).build();
        Batch first = new Batch(rankA, planA, rankA::preReduced);
        Batch second = new Batch(rankB, planB, rankB::home);
        for (int round = 0; round < 4; round++) {
            LowLatencyHandle handle = fly(context.buffer(), first, second);
            rankB.combinePreReduced(handle);
        }
    }

    /** A weight of no selection is of no account, not even one that is no number. */
    @Cases(from = "few")
    public void weightsOfNoSelection(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        Tensor weights = context.download(rank.weights());
        for (int token = 0; token < weights.size(0); token++) {
            for (int k = 0; k < shape.topk(); k++) {
                if (rank.world().routing().expert(context.rank(), token, k) < 0) {
                    weights.setFloat(Float.NaN, token, k);
                }
            }
        }
        context.backend().write(weights, rank.weights());
        rank.combinePreReduced(rank.dispatchWeighted(BF16).handle());
    }

    /** Rows in the buffer's own memory, rows that begin anywhere, an output that is given. */
    @Cases(from = "few")
    public void preReducedFromAndToOtherMemory(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.raggedRank(context);
        Buffer buffer = context.buffer();
        Tensor outputs = rank.world().outputs().get(context.rank());
        Tensor strided = context.upload(HostTensors.withRowGap(outputs, 3));
        int tokens = rank.world().routing().numTokens(context.rank());
        Tensor home = context.poisonedWithRowGap(5, DType.BF16, tokens, shape.hidden());
        for (CombineFormat format : List.of(CombineFormat.BF16, CombineFormat.FP8)) {
            for (boolean zeroCopy : new boolean[] {true, false, true}) {
                LowLatencyHandle handle = rank.dispatchWeighted(BF16).handle();
                Tensor x = zeroCopy ? rank.filledCombineBuffer(handle) : strided;
                LowLatencyCombinePlan plan =
                        LowLatencyCombinePlan.preReduced(x, rank.topkIdx(), handle)
                                .format(format)
                                .out(home)
                                .build();
                LowLatencyCombineResult result = buffer.lowLatencyCombine(plan);
                rank.verify(result, plan);
                assertThat(result.x().address()).isEqualTo(home.address());
            }
        }
    }

    /** What a masked rank owes is left out; it sums for nobody. */
    @Cases(from = "few")
    public void preReducedWithoutAMaskedRank(LowLatencyShape shape, RankContext context) {
        leaveOutTheLast(
                shape,
                context,
                rank -> {
                    rank.combinePreReduced(rank.dispatchWeighted(FP8).handle());
                    LowLatencyHandle handle = rank.dispatchWeighted(FP8).handle();
                    rank.combinePreReduced(handle, CombineFormat.FP8);
                });
    }
}
