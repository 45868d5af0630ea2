package io.deepep.testkit.conformance.normal;

import static io.deepep.DType.BF16;
import static io.deepep.DType.F32;
import static io.deepep.DType.FP8_E4M3;
import static io.deepep.DType.I32;
import static io.deepep.DType.I64;

import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.MisusedRank;
import io.deepep.testkit.conformance.Misuses;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.stream.Stream;

/**
 * Normal-mode calls that must be refused. The buffer's limits are those of {@link #LIMITS}, the
 * good call has 10 tokens of 128 channels with 4 of 16 experts.
 */
public final class NormalMisuses {
    public static final NormalLimits LIMITS = NormalLimits.of(16, 256, 4, 16);
    public static final int TOKENS = 10;
    public static final int HIDDEN = 128;
    public static final int EXPERTS = 16;

    private NormalMisuses() {}

    /** One rank that has dispatched: its inputs and the handle. */
    public record Rank(NormalRank inputs, DispatchHandle handle) implements MisusedRank {
        @Override
        public RankContext context() {
            return inputs.context();
        }

        Tensor inBuffer(DType dtype, long... shape) {
            return Misuse.inBuffer(context(), false, dtype, shape);
        }

        /** The good inputs. */
        Tensor x() {
            return inputs.x();
        }

        Tensor topkIdx() {
            return inputs.topkIdx();
        }

        Tensor weights() {
            return inputs.weights();
        }

        DispatchPlan.Tokens bare() {
            return inputs.bare();
        }

        DispatchPlan.Builder plan() {
            return inputs.plan();
        }

        void dispatch(DispatchPlan.Builder plan) {
            buffer().dispatch(plan.build());
        }

        /** Dispatches other tokens with the good indices. */
        void dispatchX(Tensor x) {
            dispatch(DispatchPlan.builder(x).topk(topkIdx(), weights(), 16));
        }

        /** Dispatches the good tokens with other routing. */
        void dispatchTopk(Tensor idx, Tensor weights, int experts) {
            dispatch(bare().topk(idx, weights, experts));
        }

        int numRows() {
            return handle.numRecvTokens();
        }

        Tensor good() {
            return tensor(BF16, numRows(), HIDDEN);
        }

        CombinePlan.Builder home() {
            return CombinePlan.builder(good(), handle);
        }

        void combine(CombinePlan.Builder plan) {
            buffer().combine(plan.build());
        }

        void combineX(Tensor x) {
            combine(CombinePlan.builder(x, handle));
        }
    }

    /** The rank's share of the good exchange, with a buffer of {@link #LIMITS}. */
    public static NormalRank rank(RankContext context) {
        return new NormalRank(
                context, context.shared(context.topology().numRanks(), NormalMisuses::world));
    }

    public static NormalWorld world(int numRanks) {
        return NormalWorld.bf16(RoutingSpec.of(numRanks, TOKENS, 16, 4).withSeed(9), HIDDEN);
    }

    public static Stream<Misuse<Rank>> all() {
        Misuses<Rank> misuses = new Misuses<>();
        tokens(misuses);
        scales(misuses);
        routing(misuses);
        forms(misuses);
        NormalCombineMisuses.inputs(misuses);
        NormalCombineMisuses.fp8Rows(misuses);
        NormalCombineMisuses.outputs(misuses);
        NormalCombineMisuses.others(misuses);
        return misuses.stream();
    }

    private static void tokens(Misuses<Rank> misuses) {
        misuses.argument("x has one dimension", "x", r -> r.dispatchX(r.tensor(BF16, TOKENS)));
        misuses.argument(
                "x has three dimensions", "x", r -> r.dispatchX(r.tensor(BF16, TOKENS, 1, HIDDEN)));
        misuses.argument("x is F32", "F32", r -> r.dispatchX(r.tensor(F32, TOKENS, HIDDEN)));
        misuses.argument(
                "x has an odd hidden size", "12", r -> r.dispatchX(r.tensor(BF16, TOKENS, 12)));
        misuses.argument(
                "x has too many channels", "264", r -> r.dispatchX(r.tensor(BF16, TOKENS, 264)));
        misuses.argument(
                "x has too many tokens",
                "17",
                r ->
                        r.dispatch(
                                DispatchPlan.builder(r.tensor(BF16, 17, HIDDEN))
                                        .topk(r.tensor(I64, 17, 4), null, 16)));
        misuses.argument(
                "rows of x are not contiguous",
                "x",
                r ->
                        r.dispatchX(
                                r.upload(
                                        HostTensors.withColumnGap(
                                                HostTensors.allocate(BF16, TOKENS, HIDDEN)))));
        misuses.argument("x lies elsewhere", "x", r -> r.dispatchX(r.elsewhere(r.x())));
        misuses.argument(
                "x lies in the NVL buffer",
                "x is BF16[10, 128] on ",
                r -> r.dispatchX(r.inBuffer(BF16, TOKENS, HIDDEN)));
        misuses.missing("no x", "x", r -> DispatchPlan.builder(null));
        misuses.missing("no plan", "plan", r -> r.buffer().dispatch(null));
    }

    private static void scales(Misuses<Rank> misuses) {
        misuses.argument(
                "FP8 without scales",
                "scales",
                r -> r.dispatchX(r.tensor(FP8_E4M3, TOKENS, HIDDEN)));
        misuses.argument(
                "BF16 with scales",
                "scales",
                r ->
                        r.dispatch(
                                DispatchPlan.builder(r.x(), r.tensor(F32, TOKENS, 1))
                                        .topk(r.topkIdx(), null, 16)));
        misuses.argument("too few scales", "scales", r -> fp8(r, 256, F32, TOKENS, 1));
        misuses.argument("scales of too few tokens", "scales", r -> fp8(r, 128, F32, 9, 1));
        misuses.argument("scales are BF16", "scales", r -> fp8(r, 128, BF16, TOKENS, 1));
        misuses.argument(
                "FP8 with half a scale's channels", "136", r -> fp8(r, 136, F32, TOKENS, 1));
    }

    private static void fp8(Rank r, int hidden, DType dtype, long... scaleShape) {
        Tensor x = r.tensor(FP8_E4M3, TOKENS, hidden);
        r.dispatch(
                DispatchPlan.builder(x, r.tensor(dtype, scaleShape)).topk(r.topkIdx(), null, 16));
    }

    private static void routing(Misuses<Rank> misuses) {
        misuses.argument(
                "topkIdx is I32",
                "topkIdx",
                r -> r.dispatchTopk(r.tensor(I32, TOKENS, 4), null, 16));
        misuses.argument(
                "topkIdx has too few rows",
                "topkIdx",
                r -> r.dispatchTopk(r.tensor(I64, 9, 4), null, 16));
        misuses.argument(
                "topkIdx has one dimension",
                "topkIdx",
                r -> r.dispatchTopk(r.tensor(I64, TOKENS), null, 16));
        misuses.argument(
                "topkIdx has gaps",
                "topkIdx",
                r ->
                        r.dispatchTopk(
                                r.upload(
                                        HostTensors.withRowGap(
                                                HostTensors.allocate(I64, TOKENS, 4), 1)),
                                null,
                                16));
        misuses.argument(
                "topkIdx lies in the NVL buffer",
                "lies in the buffer (NVL)",
                r -> r.dispatchTopk(r.inBuffer(I64, TOKENS, 4), null, 16));
        misuses.argument(
                "topkIdx lies elsewhere",
                "topkIdx",
                r -> r.dispatchTopk(r.elsewhere(r.topkIdx()), null, 16));
        misuses.argument(
                "too many selections",
                "5",
                r -> r.dispatchTopk(r.tensor(I64, TOKENS, 5), null, 16));
        misuses.argument(
                "weights are BF16",
                "eights",
                r -> r.dispatchTopk(r.topkIdx(), r.tensor(BF16, TOKENS, 4), 16));
        misuses.argument(
                "weights have too few columns",
                "eights",
                r -> r.dispatchTopk(r.topkIdx(), r.tensor(F32, TOKENS, 3), 16));
        misuses.argument(
                "experts do not divide by ranks",
                "numExperts=15",
                r -> r.dispatchTopk(r.topkIdx(), null, 15));
        misuses.argument("too many experts", "32", r -> r.dispatchTopk(r.topkIdx(), null, 32));
        misuses.argument("no experts", "numExperts=0", r -> r.dispatchTopk(r.topkIdx(), null, 0));
        misuses.missing("no indices", "idx", r -> r.dispatchTopk(null, null, 16));
    }

    private static void forms(Misuses<Rank> misuses) {
        misuses.missing("no layout", "layout", r -> r.bare().layout(null));
        misuses.missing("no handle", "handle", r -> r.bare().cached(null));
        misuses.argument(
                "handle of another number of tokens",
                "8",
                r ->
                        r.dispatch(
                                DispatchPlan.builder(r.tensor(BF16, 8, HIDDEN))
                                        .cached(r.handle())));
        misuses.argument(
                "expanded without indices",
                "expanded",
                r -> r.dispatch(r.bare().cached(r.handle()).expanded(true)));
        misuses.argument(
                "alignment of 0",
                "expertAlignment=0",
                r -> r.dispatch(r.plan().expertAlignment(0)));
        misuses.argument("an odd number of SMs", "numSms=3", r -> r.dispatch(r.plan().numSms(3)));
        misuses.argument(
                "more SMs than the buffer is laid out for",
                "numChannels=4096",
                r -> r.dispatch(r.plan().numSms(8192)));
        misuses.argument(
                "alignment of 2^30",
                "expertAlignment=1073741824",
                r -> r.dispatch(r.plan().expanded(true).expertAlignment(1 << 30)));
        misuses.argument(
                "expanded worst case beyond all that can come",
                "numWorstTokens=2147483647",
                r -> r.dispatch(r.plan().expanded(true).numWorstTokens(Integer.MAX_VALUE)));
        misuses.argument(
                "negative worst case",
                "numWorstTokens=-1",
                r -> r.dispatch(r.plan().numWorstTokens(-1)));
    }
}
