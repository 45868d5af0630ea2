package io.deepep.testkit.conformance.normal;

import static io.deepep.DType.BF16;
import static io.deepep.DType.F32;
import static io.deepep.DType.FP8_E4M3;
import static io.deepep.DType.I64;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.MisusedRank;
import io.deepep.testkit.conformance.Misuses;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/**
 * Normal-mode calls that must be refused. The buffer's limits are those of {@link #LIMITS}, the
 * good call has 10 tokens of 128 channels with 4 of 16 experts.
 */
public final class NormalMisuses extends Misuses<NormalMisuses.Rank> {
    public static final NormalLimits LIMITS = NormalLimits.of(16, 256, 4, 16);
    public static final int TOKENS = 10;
    public static final int HIDDEN = 128;
    public static final int EXPERTS = 16;

    private NormalMisuses() {
        tokens();
        scales();
        routing();
        forms();
        combinedRows();
        combinedFp8Rows();
        outputs();
        layouts();
        others();
    }

    /** One rank that has dispatched: its inputs and the handle. */
    public record Rank(NormalRank inputs, DispatchHandle handle) implements MisusedRank {
        Tensor inBuffer(DType dtype, long... shape) {
            return Misuse.inBuffer(context(), false, dtype, shape);
        }

        DispatchPlan.Tokens bare() {
            return inputs.bare();
        }

        DispatchPlan.Builder plan() {
            return inputs.plan();
        }

        /** A dispatch of other tokens with the good routing. */
        DispatchPlan.Builder withX(Tensor x) {
            return DispatchPlan.builder(x).topk(topkIdx(), weights(), EXPERTS);
        }

        /** A dispatch of the good tokens with other indices, and no weights. */
        DispatchPlan.Builder withTopk(Tensor idx) {
            return bare().topk(idx, null, EXPERTS);
        }

        int numRows() {
            return handle.numRecvTokens();
        }

        Tensor good() {
            return bf16(numRows(), HIDDEN);
        }

        CombinePlan.Builder home() {
            return home(good());
        }

        CombinePlan.Builder home(Tensor x) {
            return CombinePlan.builder(x, handle);
        }
    }

    /** Ranks whose buffers have {@link #LIMITS}. */
    interface Group extends RankGroup {
        @Override
        default void limit(Buffer.Builder builder) {
            builder.normal(LIMITS);
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
        return new NormalMisuses().stream();
    }

    private void dispatch(String name, String mentions, Function<Rank, DispatchPlan.Builder> plan) {
        argument(name, mentions, r -> r.buffer().dispatch(plan.apply(r).build()));
    }

    private void tokens() {
        dispatch("x has one dimension", "x", r -> r.withX(r.bf16(TOKENS)));
        dispatch("x has three dimensions", "x", r -> r.withX(r.bf16(TOKENS, 1, HIDDEN)));
        dispatch("x is F32", "F32", r -> r.withX(r.f32(TOKENS, HIDDEN)));
        dispatch("x has an odd hidden size", "12", r -> r.withX(r.bf16(TOKENS, 12)));
        dispatch("x has too many channels", "264", r -> r.withX(r.bf16(TOKENS, 264)));
        dispatch(
                "x has too many tokens",
                "17",
                r -> DispatchPlan.builder(r.bf16(17, HIDDEN)).topk(r.i64(17, 4), null, EXPERTS));
        dispatch(
                "rows of x are not contiguous",
                "x",
                r -> r.withX(r.withColumnGap(BF16, TOKENS, HIDDEN)));
        dispatch("x lies elsewhere", "x", r -> r.withX(r.elsewhere(r.x())));
        dispatch(
                "all tensors lie elsewhere",
                "but the buffer works on ",
                r ->
                        DispatchPlan.builder(r.elsewhere(r.x()))
                                .topk(r.elsewhere(r.topkIdx()), null, EXPERTS));
        dispatch(
                "x lies in the NVL buffer",
                "x is BF16[10, 128] on ",
                r -> r.withX(r.inBuffer(BF16, TOKENS, HIDDEN)));
        missing("no x", "x", r -> DispatchPlan.builder(null));
        missing("no plan", "plan", r -> r.buffer().dispatch(null));
    }

    private void scales() {
        dispatch("FP8 without scales", "scales", r -> r.withX(r.tensor(FP8_E4M3, TOKENS, HIDDEN)));
        dispatch(
                "BF16 with scales",
                "scales",
                r ->
                        DispatchPlan.builder(r.x(), r.f32(TOKENS, 1))
                                .topk(r.topkIdx(), null, EXPERTS));
        dispatch("too few scales", "scales", r -> fp8(r, 256, F32, TOKENS, 1));
        dispatch("scales of too few tokens", "scales", r -> fp8(r, 128, F32, 9, 1));
        dispatch("scales are BF16", "scales", r -> fp8(r, 128, BF16, TOKENS, 1));
        dispatch("FP8 with half a scale's channels", "136", r -> fp8(r, 136, F32, TOKENS, 1));
    }

    private static DispatchPlan.Builder fp8(Rank r, int hidden, DType dtype, long... scaleShape) {
        Tensor x = r.tensor(FP8_E4M3, TOKENS, hidden);
        return DispatchPlan.builder(x, r.tensor(dtype, scaleShape))
                .topk(r.topkIdx(), null, EXPERTS);
    }

    private void routing() {
        dispatch("topkIdx is I32", "topkIdx", r -> r.withTopk(r.i32(TOKENS, 4)));
        dispatch("topkIdx has too few rows", "topkIdx", r -> r.withTopk(r.i64(9, 4)));
        dispatch("topkIdx has one dimension", "topkIdx", r -> r.withTopk(r.i64(TOKENS)));
        dispatch("topkIdx has gaps", "topkIdx", r -> r.withTopk(r.withColumnGap(I64, TOKENS, 4)));
        dispatch(
                "topkIdx lies in the NVL buffer",
                "lies in the buffer (NVL)",
                r -> r.withTopk(r.inBuffer(I64, TOKENS, 4)));
        dispatch("topkIdx lies elsewhere", "topkIdx", r -> r.withTopk(r.elsewhere(r.topkIdx())));
        dispatch("too many selections", "5", r -> r.withTopk(r.i64(TOKENS, 5)));
        dispatch(
                "weights are BF16",
                "eights",
                r -> r.bare().topk(r.topkIdx(), r.bf16(TOKENS, 4), EXPERTS));
        dispatch(
                "weights have too few columns",
                "eights",
                r -> r.bare().topk(r.topkIdx(), r.f32(TOKENS, 3), EXPERTS));
        dispatch(
                "weights have gaps",
                "topkWeights is F32",
                r -> r.bare().topk(r.topkIdx(), r.withColumnGap(F32, TOKENS, 4), EXPERTS));
        dispatch(
                "experts do not divide by ranks",
                "numExperts=15",
                r -> r.bare().topk(r.topkIdx(), null, 15));
        dispatch("too many experts", "32", r -> r.bare().topk(r.topkIdx(), null, 32));
        dispatch("no experts", "numExperts=0", r -> r.bare().topk(r.topkIdx(), null, 0));
        missing("no indices", "idx", r -> r.withTopk(null));
    }

    private void forms() {
        missing("no layout", "layout", r -> r.bare().layout(null));
        for (LayoutPart part : LayoutPart.values()) {
            dispatch(
                    part.field + " has gaps",
                    "layout." + part.field + " is ",
                    r -> r.plan().expectLayout(withGaps(r, part)));
        }
        missing("no handle", "handle", r -> r.bare().cached(null));
        dispatch(
                "handle of another number of tokens",
                "8",
                r -> DispatchPlan.builder(r.bf16(8, HIDDEN)).cached(r.handle()));
        dispatch(
                "expanded without indices",
                "expanded",
                r -> r.bare().cached(r.handle()).expanded(true));
        dispatch("alignment of 0", "expertAlignment=0", r -> r.plan().expertAlignment(0));
        dispatch("an odd number of SMs", "numSms=3", r -> r.plan().numSms(3));
        dispatch(
                "more SMs than the buffer is laid out for",
                "numSms=8192",
                r -> r.plan().numSms(8192));
        dispatch(
                "larger rings than the buffer is laid out for",
                "rdmaRecvChunk=1048576",
                r -> r.plan().config(new Config(2, 1, 1 << 20)));
        dispatch(
                "alignment of 2^30",
                "expertAlignment=1073741824",
                r -> r.plan().expanded(true).expertAlignment(1 << 30));
        dispatch(
                "expanded worst case beyond all that can come",
                "numWorstTokens=2147483647",
                r -> r.plan().expanded(true).numWorstTokens(Integer.MAX_VALUE));
        dispatch("negative worst case", "numWorstTokens=-1", r -> r.plan().numWorstTokens(-1));
        dispatch(
                "handle of another worst case",
                "numWorstTokens=1 but the handle has numRecvTokens=",
                r -> r.bare().cached(r.handle()).numWorstTokens(1));
    }

    /** A layout's tensors that are read without strides. */
    enum LayoutPart {
        PER_RANK("numTokensPerRank"),
        PER_EXPERT("numTokensPerExpert"),
        MASK("isTokenInRank");

        final String field;

        LayoutPart(String field) {
            this.field = field;
        }

        /** The layout with another tensor in this place. */
        DispatchLayout change(DispatchLayout layout, UnaryOperator<Tensor> how) {
            UnaryOperator<Tensor> none = UnaryOperator.identity();
            return new DispatchLayout(
                    (this == PER_RANK ? how : none).apply(layout.numTokensPerRank()),
                    layout.numTokensPerRdmaRank(),
                    (this == PER_EXPERT ? how : none).apply(layout.numTokensPerExpert()),
                    (this == MASK ? how : none).apply(layout.isTokenInRank()),
                    layout.event());
        }
    }

    private static DispatchLayout withGaps(Rank r, LayoutPart part) {
        DispatchLayout layout = r.buffer().getDispatchLayout(r.topkIdx(), EXPERTS);
        return part.change(layout, good -> r.withColumnGap(good.dtype(), good.shape()));
    }

    private void combine(String name, String mentions, Function<Rank, CombinePlan.Builder> plan) {
        argument(name, mentions, r -> r.buffer().combine(plan.apply(r).build()));
    }

    private void combinedRows() {
        combine("combined rows are missing", "x", r -> r.home(r.bf16(r.numRows() - 1, HIDDEN)));
        combine("combined rows have an odd size", "12", r -> r.home(r.bf16(r.numRows(), 12)));
        combine("combined rows are F32", "F32", r -> r.home(r.f32(r.numRows(), HIDDEN)));
        combine("combined rows lie elsewhere", "x", r -> r.home(r.elsewhere(r.good())));
        combine(
                "combined rows have gaps",
                "x is BF16",
                r -> r.home(r.withColumnGap(BF16, r.numRows(), HIDDEN)));
        combine(
                "weights of combined rows have gaps",
                "topkWeights is F32",
                r -> r.home().topkWeights(r.withColumnGap(F32, r.numRows(), 4)));
        combine(
                "bias has gaps",
                "bias0 is BF16",
                r -> r.home().bias(r.withColumnGap(BF16, TOKENS, HIDDEN)));
        combine("weights of too few rows", "eights", r -> r.home().topkWeights(r.f32(1, 4)));
        combine(
                "more SMs for a combine than the buffer is laid out for",
                "numSms=8192",
                r -> r.home().numSms(8192));
        combine("bias of too few tokens", "bias", r -> r.home().bias(r.bf16(9, HIDDEN)));
        combine(
                "second bias is F32",
                "bias",
                r -> r.home().bias(r.bf16(TOKENS, HIDDEN), r.f32(TOKENS, HIDDEN)));
    }

    private void combinedFp8Rows() {
        combine(
                "combined FP8 rows without scales",
                "scales=null",
                r -> r.home(fp8Rows(r, r.numRows())));
        combine(
                "scales of combined BF16 rows",
                "x is BF16",
                r -> r.home().scales(scales(r, r.numRows())));
        combine(
                "combined FP8 rows that are to travel as BF16",
                "format=BF16",
                r -> homeFp8(r, scales(r, r.numRows()), CombineFormat.BF16));
        combine(
                "combined FP8 rows are missing",
                "x is FP8_E4M3",
                r -> r.home(fp8Rows(r, r.numRows() - 1)).scales(scales(r, r.numRows())));
        combine(
                "scales of too few combined rows",
                "scales is F32",
                r -> homeFp8(r, scales(r, r.numRows() - 1), CombineFormat.FP8));
        combine(
                "scales of combined rows are BF16",
                "scales is BF16",
                r -> homeFp8(r, r.bf16(r.numRows(), 1), CombineFormat.FP8));
        combine(
                "scales of combined rows lie elsewhere",
                "scales is on",
                r -> homeFp8(r, r.elsewhere(scales(r, r.numRows())), CombineFormat.FP8));
        combine(
                "FP8 rows in the combine region without their scales",
                "getFp8CombineBuffer",
                r ->
                        r.home(r.buffer().getFp8CombineBuffer(r.handle()).elements())
                                .scales(scales(r, r.numRows())));
        missing(
                "FP8 combine buffer of no handle",
                "handle",
                r -> r.buffer().getFp8CombineBuffer(null));
    }

    private static Tensor fp8Rows(Rank r, int numRows) {
        return r.tensor(FP8_E4M3, numRows, HIDDEN);
    }

    private static Tensor scales(Rank r, int numRows) {
        return r.f32(numRows, 1);
    }

    private static CombinePlan.Builder homeFp8(Rank r, Tensor scales, CombineFormat format) {
        return r.home(fp8Rows(r, r.numRows())).scales(scales).format(format);
    }

    private void outputs() {
        combine("out of too few tokens", "out", r -> r.home().out(r.bf16(9, HIDDEN)));
        combine(
                "out lies in the NVL buffer",
                "out is BF16[10, 128]",
                r -> r.home().out(r.inBuffer(BF16, TOKENS, HIDDEN)));
        combine(
                "bias lies in the NVL buffer",
                "bias0 is BF16[10, 128]",
                r -> r.home().bias(r.inBuffer(BF16, TOKENS, HIDDEN)));
        combine(
                "out has all rows at one address",
                "elements overlap",
                r -> r.home().out(Misuse.repeated(r.bf16(TOKENS, HIDDEN))));
        combine("out is x", "out overlaps x", NormalMisuses::homeInto);
        combine("out is part of a bias", "out overlaps bias0", NormalMisuses::biasInto);
        combine(
                "out has gaps",
                "out is BF16",
                r -> r.home().out(r.withColumnGap(BF16, TOKENS, HIDDEN)));
        combine("out is F32", "out", r -> r.home().out(r.f32(TOKENS, HIDDEN)));
        missing("no combined rows", "x", r -> r.home(null));
        missing("no handle", "handle", r -> CombinePlan.builder(r.good(), null));
        missing("no combine plan", "plan", r -> r.buffer().combine(null));
    }

    /** The sums where other tokens have their bias; each may be where its own is. */
    private static CombinePlan.Builder biasInto(Rank r) {
        Tensor both = r.bf16(TOKENS + 1, HIDDEN);
        return r.home().bias(both.slice(0, 0, TOKENS)).out(both.slice(0, 1, TOKENS));
    }

    /** The sums into the rows that are summed. */
    private static CombinePlan.Builder homeInto(Rank r) {
        Tensor both = r.bf16(TOKENS + r.numRows(), HIDDEN);
        return r.home(both.slice(0, 0, r.numRows())).out(both.slice(0, r.numRows() - 1, TOKENS));
    }

    private void layout(String name, String mentions, Function<Rank, Tensor> idx, int experts) {
        argument(name, mentions, r -> r.buffer().getDispatchLayout(idx.apply(r), experts));
    }

    private void layouts() {
        layout("layout of I32 indices", "topkIdx", r -> r.i32(TOKENS, 4), EXPERTS);
        layout(
                "layout of indices with gaps",
                "topkIdx is I64",
                r -> r.withColumnGap(I64, TOKENS, 4),
                EXPERTS);
        layout("layout of too many tokens", "17", r -> r.i64(17, 4), EXPERTS);
        layout("layout of too many selections", "numTopk=5", r -> r.i64(TOKENS, 5), EXPERTS);
        layout("layout of odd experts", "numExperts=15", Rank::topkIdx, 15);
        layout("layout of too many experts", "numExperts=32", Rank::topkIdx, 32);
        layout("layout of no experts", "numExperts=0", Rank::topkIdx, 0);
    }

    private void others() {
        missing("combine buffer of no handle", "handle", r -> r.buffer().getCombineBuffer(null));
        argument(
                "misaligned view",
                "offset=1",
                r -> r.buffer().getLocalBufferTensor(BF16, 1, 1, false));
        argument(
                "view past the end",
                "bytes",
                r -> r.buffer().getLocalBufferTensor(BF16, 1L << 40, 0, false));
        argument(
                "view of more bytes than a long counts",
                "bytes",
                r -> r.buffer().getLocalBufferTensor(BF16, Long.MAX_VALUE, 0, false));
        missing(
                "view of no type",
                "dtype",
                r -> r.buffer().getLocalBufferTensor(null, 1, 0, false));
        missing("no options", "options", r -> r.buffer().dispatch(r.plan().build(), null));
        state("a mode that is not open", "lowLatency", r -> r.buffer().cleanLowLatencyBuffer());
    }
}
