package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misuse.argument;
import static io.deepep.testkit.conformance.Misuse.missing;

import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.RankContext;
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
    public record Rank(NormalRank inputs, DispatchHandle handle) {
        Tensor tensor(DType dtype, long... shape) {
            return inputs.context().upload(HostTensors.allocate(dtype, shape));
        }

        Tensor inBuffer(DType dtype, long... shape) {
            return Misuse.inBuffer(inputs.context(), false, dtype, shape);
        }

        void dispatch(DispatchPlan.Builder plan) {
            inputs.context().buffer().dispatch(plan.build());
        }

        /** Dispatches other tokens with the good indices. */
        void dispatchX(Tensor x) {
            dispatch(DispatchPlan.builder(x).topk(inputs.topkIdx(), inputs.weights(), 16));
        }

        /** Dispatches the good tokens with other routing. */
        void dispatchTopk(Tensor idx, Tensor weights, int experts) {
            dispatch(inputs.bare().topk(idx, weights, experts));
        }

        Tensor good() {
            return tensor(DType.BF16, handle.numRecvTokens(), HIDDEN);
        }

        void combine(CombinePlan.Builder plan) {
            inputs.context().buffer().combine(plan.build());
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
        return Stream.of(
                        tokens(),
                        scales(),
                        routing(),
                        forms(),
                        NormalCombineMisuses.combines(),
                        NormalCombineMisuses.others())
                .flatMap(s -> s);
    }

    private static Stream<Misuse<Rank>> tokens() {
        return Stream.of(
                argument(
                        "x has one dimension", "x", r -> r.dispatchX(r.tensor(DType.BF16, TOKENS))),
                argument(
                        "x has three dimensions",
                        "x",
                        r -> r.dispatchX(r.tensor(DType.BF16, TOKENS, 1, HIDDEN))),
                argument("x is F32", "F32", r -> r.dispatchX(r.tensor(DType.F32, TOKENS, HIDDEN))),
                argument(
                        "x has an odd hidden size",
                        "12",
                        r -> r.dispatchX(r.tensor(DType.BF16, TOKENS, 12))),
                argument(
                        "x has too many channels",
                        "264",
                        r -> r.dispatchX(r.tensor(DType.BF16, TOKENS, 264))),
                argument(
                        "x has too many tokens",
                        "17",
                        r ->
                                r.dispatch(
                                        DispatchPlan.builder(r.tensor(DType.BF16, 17, HIDDEN))
                                                .topk(r.tensor(DType.I64, 17, 4), null, 16))),
                argument(
                        "rows of x are not contiguous",
                        "x",
                        r ->
                                r.dispatchX(
                                        r.inputs()
                                                .context()
                                                .upload(
                                                        HostTensors.withColumnGap(
                                                                HostTensors.allocate(
                                                                        DType.BF16,
                                                                        TOKENS,
                                                                        HIDDEN))))),
                argument(
                        "x lies elsewhere",
                        "x",
                        r -> r.dispatchX(Misuse.elsewhere(r.inputs().context(), r.inputs().x()))),
                argument(
                        "x lies in the NVL buffer",
                        "x is BF16[10, 128] on ",
                        r -> r.dispatchX(r.inBuffer(DType.BF16, TOKENS, HIDDEN))),
                missing("no x", "x", r -> DispatchPlan.builder(null)),
                missing("no plan", "plan", r -> r.inputs().context().buffer().dispatch(null)));
    }

    private static Stream<Misuse<Rank>> scales() {
        return Stream.of(
                argument(
                        "FP8 without scales",
                        "scales",
                        r -> r.dispatchX(r.tensor(DType.FP8_E4M3, TOKENS, HIDDEN))),
                argument(
                        "BF16 with scales",
                        "scales",
                        r ->
                                r.dispatch(
                                        DispatchPlan.builder(
                                                        r.inputs().x(),
                                                        r.tensor(DType.F32, TOKENS, 1))
                                                .topk(r.inputs().topkIdx(), null, 16))),
                argument("too few scales", "scales", r -> fp8(r, 256, DType.F32, TOKENS, 1)),
                argument("scales of too few tokens", "scales", r -> fp8(r, 128, DType.F32, 9, 1)),
                argument("scales are BF16", "scales", r -> fp8(r, 128, DType.BF16, TOKENS, 1)),
                argument(
                        "FP8 with half a scale's channels",
                        "136",
                        r -> fp8(r, 136, DType.F32, TOKENS, 1)));
    }

    private static void fp8(Rank r, int hidden, DType dtype, long... scaleShape) {
        Tensor x = r.tensor(DType.FP8_E4M3, TOKENS, hidden);
        r.dispatch(
                DispatchPlan.builder(x, r.tensor(dtype, scaleShape))
                        .topk(r.inputs().topkIdx(), null, 16));
    }

    private static Stream<Misuse<Rank>> routing() {
        return Stream.of(
                argument(
                        "topkIdx is I32",
                        "topkIdx",
                        r -> r.dispatchTopk(r.tensor(DType.I32, TOKENS, 4), null, 16)),
                argument(
                        "topkIdx has too few rows",
                        "topkIdx",
                        r -> r.dispatchTopk(r.tensor(DType.I64, 9, 4), null, 16)),
                argument(
                        "topkIdx has one dimension",
                        "topkIdx",
                        r -> r.dispatchTopk(r.tensor(DType.I64, TOKENS), null, 16)),
                argument(
                        "topkIdx has gaps",
                        "topkIdx",
                        r ->
                                r.dispatchTopk(
                                        r.inputs()
                                                .context()
                                                .upload(
                                                        HostTensors.withRowGap(
                                                                HostTensors.allocate(
                                                                        DType.I64, TOKENS, 4),
                                                                1)),
                                        null,
                                        16)),
                argument(
                        "topkIdx lies in the NVL buffer",
                        "lies in the buffer (NVL)",
                        r -> r.dispatchTopk(r.inBuffer(DType.I64, TOKENS, 4), null, 16)),
                argument(
                        "topkIdx lies elsewhere",
                        "topkIdx",
                        r ->
                                r.dispatchTopk(
                                        Misuse.elsewhere(
                                                r.inputs().context(), r.inputs().topkIdx()),
                                        null,
                                        16)),
                argument(
                        "too many selections",
                        "5",
                        r -> r.dispatchTopk(r.tensor(DType.I64, TOKENS, 5), null, 16)),
                argument(
                        "weights are BF16",
                        "eights",
                        r ->
                                r.dispatchTopk(
                                        r.inputs().topkIdx(), r.tensor(DType.BF16, TOKENS, 4), 16)),
                argument(
                        "weights have too few columns",
                        "eights",
                        r ->
                                r.dispatchTopk(
                                        r.inputs().topkIdx(), r.tensor(DType.F32, TOKENS, 3), 16)),
                argument(
                        "experts do not divide by ranks",
                        "numExperts=15",
                        r -> r.dispatchTopk(r.inputs().topkIdx(), null, 15)),
                argument(
                        "too many experts",
                        "32",
                        r -> r.dispatchTopk(r.inputs().topkIdx(), null, 32)),
                argument(
                        "no experts",
                        "numExperts=0",
                        r -> r.dispatchTopk(r.inputs().topkIdx(), null, 0)),
                missing("no indices", "idx", r -> r.dispatchTopk(null, null, 16)));
    }

    private static Stream<Misuse<Rank>> forms() {
        return Stream.of(
                missing("no layout", "layout", r -> r.inputs().bare().layout(null)),
                missing("no handle", "handle", r -> r.inputs().bare().cached(null)),
                argument(
                        "handle of another number of tokens",
                        "8",
                        r ->
                                r.dispatch(
                                        DispatchPlan.builder(r.tensor(DType.BF16, 8, HIDDEN))
                                                .cached(r.handle()))),
                argument(
                        "expanded without indices",
                        "expanded",
                        r -> r.dispatch(r.inputs().bare().cached(r.handle()).expanded(true))),
                argument(
                        "alignment of 0",
                        "expertAlignment=0",
                        r -> r.dispatch(r.inputs().plan().expertAlignment(0))),
                argument(
                        "an odd number of SMs",
                        "numSms=3",
                        r -> r.dispatch(r.inputs().plan().numSms(3))),
                argument(
                        "more SMs than the buffer is laid out for",
                        "numChannels=4096",
                        r -> r.dispatch(r.inputs().plan().numSms(8192))),
                argument(
                        "alignment of 2^30",
                        "expertAlignment=1073741824",
                        r -> r.dispatch(r.inputs().plan().expanded(true).expertAlignment(1 << 30))),
                argument(
                        "expanded worst case beyond all that can come",
                        "numWorstTokens=2147483647",
                        r ->
                                r.dispatch(
                                        r.inputs()
                                                .plan()
                                                .expanded(true)
                                                .numWorstTokens(Integer.MAX_VALUE))),
                argument(
                        "negative worst case",
                        "numWorstTokens=-1",
                        r -> r.dispatch(r.inputs().plan().numWorstTokens(-1))));
    }
}
