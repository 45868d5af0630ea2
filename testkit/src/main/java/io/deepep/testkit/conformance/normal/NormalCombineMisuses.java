package io.deepep.testkit.conformance.normal;

import static io.deepep.DType.BF16;
import static io.deepep.DType.FP8_E4M3;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.Misuses;
import io.deepep.testkit.conformance.normal.NormalMisuses.Rank;
import java.util.function.Function;

/**
 * Combines and small calls of normal mode that must be refused; the numbers are those of {@link
 * NormalMisuses}.
 */
final class NormalCombineMisuses extends Misuses<Rank> {
    private static final int TOKENS = NormalMisuses.TOKENS;
    private static final int HIDDEN = NormalMisuses.HIDDEN;

    NormalCombineMisuses() {
        inputs();
        fp8Rows();
        outputs();
        others();
    }

    private void combine(String name, String mentions, Function<Rank, CombinePlan.Builder> plan) {
        argument(name, mentions, r -> r.buffer().combine(plan.apply(r).build()));
    }

    private void inputs() {
        combine("combined rows are missing", "x", r -> r.home(r.bf16(r.numRows() - 1, HIDDEN)));
        combine("combined rows are too narrow", "120", r -> r.home(r.bf16(r.numRows(), 120)));
        combine("combined rows are F32", "F32", r -> r.home(r.f32(r.numRows(), HIDDEN)));
        combine("combined rows lie elsewhere", "x", r -> r.home(r.elsewhere(r.good())));
        combine("weights of too few rows", "eights", r -> r.home().topkWeights(r.f32(1, 4)));
        combine("bias of too few tokens", "bias", r -> r.home().bias(r.bf16(9, HIDDEN)));
        combine(
                "second bias is F32",
                "bias",
                r -> r.home().bias(r.bf16(TOKENS, HIDDEN), r.f32(TOKENS, HIDDEN)));
    }

    private void fp8Rows() {
        combine(
                "combined FP8 rows without scales",
                "scales=null",
                r -> r.home(fp8(r, r.numRows())));
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
                r -> r.home(fp8(r, r.numRows() - 1)).scales(scales(r, r.numRows())));
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

    private static Tensor fp8(Rank r, int numRows) {
        return r.tensor(FP8_E4M3, numRows, HIDDEN);
    }

    private static Tensor scales(Rank r, int numRows) {
        return r.f32(numRows, 1);
    }

    private static CombinePlan.Builder homeFp8(Rank r, Tensor scales, CombineFormat format) {
        return r.home(fp8(r, r.numRows())).scales(scales).format(format);
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
        combine("out is x", "out overlaps x", NormalCombineMisuses::homeInto);
        combine("out is F32", "out", r -> r.home().out(r.f32(TOKENS, HIDDEN)));
        missing("no combined rows", "x", r -> r.home(null));
        missing("no handle", "handle", r -> CombinePlan.builder(r.good(), null));
        missing("no combine plan", "plan", r -> r.buffer().combine(null));
    }

    /** The sums into the rows that are summed. */
    private static CombinePlan.Builder homeInto(Rank r) {
        Tensor both = r.bf16(TOKENS + r.numRows(), HIDDEN);
        return r.home(both.slice(0, 0, r.numRows())).out(both.slice(0, r.numRows() - 1, TOKENS));
    }

    private void others() {
        argument(
                "layout of I32 indices",
                "topkIdx",
                r -> r.buffer().getDispatchLayout(r.i32(TOKENS, 4), 16));
        argument(
                "layout of odd experts",
                "numExperts=15",
                r -> r.buffer().getDispatchLayout(r.topkIdx(), 15));
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
        missing("no options", "options", r -> r.buffer().dispatch(r.plan().build(), null));
        state("a mode that is not open", "lowLatency", r -> r.buffer().cleanLowLatencyBuffer());
    }
}
