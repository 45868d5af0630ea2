package io.deepep.testkit.conformance.normal;

import static io.deepep.DType.BF16;
import static io.deepep.DType.F32;
import static io.deepep.DType.FP8_E4M3;
import static io.deepep.DType.I32;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.Misuses;
import io.deepep.testkit.conformance.normal.NormalMisuses.Rank;

/**
 * Combines and small calls of normal mode that must be refused; the numbers are those of {@link
 * NormalMisuses}.
 */
final class NormalCombineMisuses {
    private static final int TOKENS = NormalMisuses.TOKENS;
    private static final int HIDDEN = NormalMisuses.HIDDEN;

    private NormalCombineMisuses() {}

    static void inputs(Misuses<Rank> misuses) {
        misuses.argument(
                "combined rows are missing",
                "x",
                r -> r.combineX(r.tensor(BF16, r.numRows() - 1, HIDDEN)));
        misuses.argument(
                "combined rows are too narrow",
                "120",
                r -> r.combineX(r.tensor(BF16, r.numRows(), 120)));
        misuses.argument(
                "combined rows are F32",
                "F32",
                r -> r.combineX(r.tensor(F32, r.numRows(), HIDDEN)));
        misuses.argument(
                "combined rows lie elsewhere", "x", r -> r.combineX(r.elsewhere(r.good())));
        misuses.argument(
                "weights of too few rows",
                "eights",
                r -> r.combine(r.home().topkWeights(r.tensor(F32, 1, 4))));
        misuses.argument(
                "bias of too few tokens",
                "bias",
                r -> r.combine(r.home().bias(r.tensor(BF16, 9, HIDDEN))));
        misuses.argument(
                "second bias is F32",
                "bias",
                r ->
                        r.combine(
                                r.home()
                                        .bias(
                                                r.tensor(BF16, TOKENS, HIDDEN),
                                                r.tensor(F32, TOKENS, HIDDEN))));
    }

    static void fp8Rows(Misuses<Rank> misuses) {
        misuses.argument(
                "combined FP8 rows without scales",
                "scales=null",
                r -> r.combineX(fp8(r, r.numRows())));
        misuses.argument(
                "scales of combined BF16 rows",
                "x is BF16",
                r -> r.combine(r.home().scales(scales(r, r.numRows()))));
        misuses.argument(
                "combined FP8 rows that are to travel as BF16",
                "format=BF16",
                r -> combineFp8(r, scales(r, r.numRows()), CombineFormat.BF16));
        misuses.argument(
                "combined FP8 rows are missing",
                "x is FP8_E4M3",
                r ->
                        r.combine(
                                CombinePlan.builder(fp8(r, r.numRows() - 1), r.handle())
                                        .scales(scales(r, r.numRows()))));
        misuses.argument(
                "scales of too few combined rows",
                "scales is F32",
                r -> combineFp8(r, scales(r, r.numRows() - 1), CombineFormat.FP8));
        misuses.argument(
                "scales of combined rows are BF16",
                "scales is BF16",
                r -> combineFp8(r, r.tensor(BF16, r.numRows(), 1), CombineFormat.FP8));
        misuses.argument(
                "scales of combined rows lie elsewhere",
                "scales is on",
                r -> combineFp8(r, r.elsewhere(scales(r, r.numRows())), CombineFormat.FP8));
        misuses.argument(
                "FP8 rows in the combine region without their scales",
                "getFp8CombineBuffer",
                r ->
                        r.combine(
                                CombinePlan.builder(
                                                r.buffer()
                                                        .getFp8CombineBuffer(r.handle())
                                                        .elements(),
                                                r.handle())
                                        .scales(scales(r, r.numRows()))));
        misuses.missing(
                "FP8 combine buffer of no handle",
                "handle",
                r -> r.buffer().getFp8CombineBuffer(null));
    }

    private static Tensor fp8(Rank r, int numRows) {
        return r.tensor(FP8_E4M3, numRows, HIDDEN);
    }

    private static Tensor scales(Rank r, int numRows) {
        return r.tensor(F32, numRows, 1);
    }

    private static void combineFp8(Rank r, Tensor scales, CombineFormat format) {
        r.combine(
                CombinePlan.builder(fp8(r, r.numRows()), r.handle()).scales(scales).format(format));
    }

    static void outputs(Misuses<Rank> misuses) {
        misuses.argument(
                "out of too few tokens",
                "out",
                r -> r.combine(r.home().out(r.tensor(BF16, 9, HIDDEN))));
        misuses.argument(
                "out lies in the NVL buffer",
                "out is BF16[10, 128]",
                r -> r.combine(r.home().out(r.inBuffer(BF16, TOKENS, HIDDEN))));
        misuses.argument(
                "bias lies in the NVL buffer",
                "bias0 is BF16[10, 128]",
                r -> r.combine(r.home().bias(r.inBuffer(BF16, TOKENS, HIDDEN))));
        misuses.argument(
                "out has all rows at one address",
                "elements overlap",
                r -> r.combine(r.home().out(Misuse.repeated(r.tensor(BF16, TOKENS, HIDDEN)))));
        misuses.argument("out is x", "out overlaps x", NormalCombineMisuses::combineInto);
        misuses.argument(
                "out is F32", "out", r -> r.combine(r.home().out(r.tensor(F32, TOKENS, HIDDEN))));
        misuses.missing("no combined rows", "x", r -> CombinePlan.builder(null, r.handle()));
        misuses.missing("no handle", "handle", r -> CombinePlan.builder(r.good(), null));
        misuses.missing("no combine plan", "plan", r -> r.buffer().combine(null));
    }

    /** The sums into the rows that are summed. */
    private static void combineInto(Rank r) {
        Tensor both = r.tensor(BF16, TOKENS + r.numRows(), HIDDEN);
        r.combine(
                CombinePlan.builder(both.slice(0, 0, r.numRows()), r.handle())
                        .out(both.slice(0, r.numRows() - 1, TOKENS)));
    }

    static void others(Misuses<Rank> misuses) {
        misuses.argument(
                "layout of I32 indices",
                "topkIdx",
                r -> r.buffer().getDispatchLayout(r.tensor(I32, TOKENS, 4), 16));
        misuses.argument(
                "layout of odd experts",
                "numExperts=15",
                r -> r.buffer().getDispatchLayout(r.topkIdx(), 15));
        misuses.missing(
                "combine buffer of no handle", "handle", r -> r.buffer().getCombineBuffer(null));
        misuses.argument(
                "misaligned view",
                "offset=1",
                r -> r.buffer().getLocalBufferTensor(BF16, 1, 1, false));
        misuses.argument(
                "view past the end",
                "bytes",
                r -> r.buffer().getLocalBufferTensor(BF16, 1L << 40, 0, false));
        misuses.argument(
                "view of more bytes than a long counts",
                "bytes",
                r -> r.buffer().getLocalBufferTensor(BF16, Long.MAX_VALUE, 0, false));
        misuses.missing("no options", "options", r -> r.buffer().dispatch(r.plan().build(), null));
        misuses.state(
                "a mode that is not open", "lowLatency", r -> r.buffer().cleanLowLatencyBuffer());
    }
}
