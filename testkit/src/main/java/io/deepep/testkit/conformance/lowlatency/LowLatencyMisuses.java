package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.DType.BF16;
import static io.deepep.DType.F32;
import static io.deepep.DType.FP8_E4M3;
import static io.deepep.DType.I32;
import static io.deepep.DType.I64;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.MisusedRank;
import io.deepep.testkit.conformance.Misuses;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * Low-latency calls that must be refused, over 4 ranks with 10 tokens of 128 channels and 3 of 8
 * experts.
 */
final class LowLatencyMisuses extends Misuses<LowLatencyMisuses.Rank> {
    static final LowLatencyShape SHAPE = new LowLatencyShape(2, 2, 10, 128, 3, 8);
    private static final int ROWS = 40;
    private static final int EXPERTS = 2;

    private LowLatencyMisuses() {
        dispatches();
        statistics();
        combinedRows();
        combines();
        others();
    }

    /** One rank that has dispatched: its inputs and the handle. */
    record Rank(LowLatencyRank inputs, LowLatencyHandle handle) implements MisusedRank {
        Tensor inBuffer(DType dtype, long... shape) {
            return Misuse.inBuffer(context(), true, dtype, shape);
        }

        Tensor outputs() {
            return inputs.outputs();
        }

        LowLatencyDispatchPlan.Builder good() {
            return inputs.plan(LowLatencyFormat.FP8);
        }

        /** A dispatch of other tokens. */
        LowLatencyDispatchPlan.Builder withX(Tensor x) {
            return LowLatencyDispatchPlan.builder(x, topkIdx());
        }

        /** A dispatch with other indices. */
        LowLatencyDispatchPlan.Builder withTopkIdx(Tensor idx) {
            return LowLatencyDispatchPlan.builder(x(), idx);
        }

        LowLatencyCombinePlan.Builder home() {
            return inputs.home(handle);
        }

        /** A combine of other rows. */
        LowLatencyCombinePlan.Builder home(Tensor x) {
            return home(x, topkIdx(), weights());
        }

        LowLatencyCombinePlan.Builder home(Tensor x, Tensor idx, Tensor weights) {
            return LowLatencyCombinePlan.builder(x, idx, weights, handle);
        }
    }

    static Stream<Misuse<Rank>> all() {
        return new LowLatencyMisuses().stream();
    }

    private void dispatch(
            String name, String mentions, Function<Rank, LowLatencyDispatchPlan.Builder> plan) {
        argument(name, mentions, r -> r.buffer().lowLatencyDispatch(plan.apply(r).build()));
    }

    private void combine(
            String name, String mentions, Function<Rank, LowLatencyCombinePlan.Builder> plan) {
        argument(name, mentions, r -> r.buffer().lowLatencyCombine(plan.apply(r).build()));
    }

    private void dispatches() {
        String tooWide = "exceeds LowLatencyLimits.hidden=128";
        dispatch("tokens are too wide", tooWide, r -> r.withX(r.bf16(10, 256)));
        dispatch("tokens are empty", "hidden=0", r -> r.withX(r.bf16(10, 0)));
        dispatch("tokens to cast have an odd size", "hidden=64", r -> r.withX(r.bf16(10, 64)));
        dispatch(
                "tokens have an odd size",
                "hidden=12",
                r -> r.withX(r.bf16(10, 12)).format(LowLatencyFormat.BF16));
        dispatch("x is FP8", "x", r -> r.withX(r.tensor(FP8_E4M3, 10, 128)));
        dispatch("x has one dimension", "x", r -> r.withX(r.bf16(10)));
        dispatch(
                "too many tokens",
                "11",
                r -> LowLatencyDispatchPlan.builder(r.bf16(11, 128), r.i64(11, 3)));
        dispatch("rows of x are not contiguous", "x", r -> r.withX(r.withColumnGap(BF16, 10, 128)));
        dispatch(
                "x lies in the RDMA buffer",
                "lies in the buffer (RDMA)",
                r -> r.withX(r.inBuffer(BF16, 10, 128)));
        dispatch("x lies elsewhere", "x", r -> r.withX(r.elsewhere(r.x())));
        dispatch("topkIdx is I32", "topkIdx", r -> r.withTopkIdx(r.i32(10, 3)));
        dispatch("topkIdx has too few rows", "topkIdx", r -> r.withTopkIdx(r.i64(9, 3)));
        dispatch(
                "topkIdx has gaps",
                "topkIdx is I64",
                r -> r.withTopkIdx(r.withColumnGap(I64, 10, 3)));
        dispatch("too many selections", "4", r -> r.withTopkIdx(r.i64(10, 4)));
        dispatch("topkIdx lies elsewhere", "topkIdx", r -> r.withTopkIdx(r.elsewhere(r.topkIdx())));
        missing("no x", "x", r -> LowLatencyDispatchPlan.builder(null, r.topkIdx()));
        missing("no indices", "topkIdx", r -> LowLatencyDispatchPlan.builder(r.x(), null));
        dispatch(
                "dispatched weights of another shape",
                "topkWeights",
                r -> r.good().topkWeights(r.f32(10, 2)));
        dispatch(
                "dispatched weights are BF16",
                "topkWeights",
                r -> r.good().topkWeights(r.bf16(10, 3)));
        dispatch(
                "dispatched weights have gaps",
                "topkWeights is F32",
                r -> r.good().topkWeights(r.withColumnGap(F32, 10, 3)));
        dispatch(
                "dispatched weights lie elsewhere",
                "topkWeights",
                r -> r.good().topkWeights(r.elsewhere(r.weights())));
        missing("no format", "what", r -> r.good().format(null));
        missing("no plan", "plan", r -> r.buffer().lowLatencyDispatch(null));
    }

    private void statistics() {
        dispatch(
                "counts of too many experts",
                "umulativeStats",
                r -> r.good().cumulativeStats(r.i32(3)));
        dispatch("counts are I64", "umulativeStats", r -> r.good().cumulativeStats(r.i64(EXPERTS)));
        dispatch(
                "counts have gaps",
                "cumulativeStats is I32",
                r -> r.good().cumulativeStats(r.withColumnGap(I32, EXPERTS)));
        dispatch("waits of too few ranks", "aitCostStats", r -> r.good().waitCostStats(r.i64(3)));
        dispatch("waits are I32", "aitCostStats", r -> r.good().waitCostStats(r.i32(4)));
        dispatch(
                "waits have gaps",
                "waitCostStats is I64",
                r -> r.good().waitCostStats(r.withColumnGap(I64, 4)));
        dispatch(
                "counts lie in the RDMA buffer",
                "cumulativeStats is I32[2]",
                r -> r.good().cumulativeStats(r.inBuffer(I32, EXPERTS)));
        dispatch(
                "waits lie in the RDMA buffer",
                "waitCostStats is I64[4]",
                r -> r.good().waitCostStats(r.inBuffer(I64, 4)));
        combine(
                "combine waits lie in the RDMA buffer",
                "waitCostStats is I64[4]",
                r -> r.home().waitCostStats(r.inBuffer(I64, 4)));
        combine(
                "combine waits of too few ranks",
                "aitCostStats",
                r -> r.home().waitCostStats(r.i64(3)));
    }

    private void combinedRows() {
        combine("combined rows of too few experts", "x", r -> r.home(r.bf16(1, ROWS, 128)));
        combine("too few combined rows", "x", r -> r.home(r.bf16(EXPERTS, ROWS - 1, 128)));
        combine("combined rows are too wide", "256", r -> r.home(r.bf16(EXPERTS, ROWS, 256)));
        combine("combined rows have an odd size", "12", r -> r.home(r.bf16(EXPERTS, ROWS, 12)));
        combine(
                "combined rows to cast have an odd size",
                "hidden=64",
                r -> r.home(r.bf16(EXPERTS, ROWS, 64)).format(CombineFormat.FP8));
        combine("combined rows are F32", "x", r -> r.home(r.f32(EXPERTS, ROWS, 128)));
        combine("combined rows lie elsewhere", "x", r -> r.home(r.elsewhere(r.outputs())));
        combine(
                "combined rows have gaps",
                "x is BF16",
                r -> r.home(r.withColumnGap(BF16, EXPERTS, ROWS, 128)));
    }

    private void combines() {
        combine(
                "indices of another shape",
                "topkIdx",
                r -> r.home(r.outputs(), r.i64(10, 2), r.weights()));
        combine(
                "indices have gaps",
                "topkIdx is I64",
                r -> r.home(r.outputs(), r.withColumnGap(I64, 10, 3), r.weights()));
        combine(
                "weights of another shape",
                "topkWeights",
                r -> r.home(r.outputs(), r.topkIdx(), r.f32(10, 2)));
        combine(
                "weights are BF16",
                "topkWeights",
                r -> r.home(r.outputs(), r.topkIdx(), r.bf16(10, 3)));
        combine(
                "weights have gaps",
                "topkWeights is F32",
                r -> r.home(r.outputs(), r.topkIdx(), r.withColumnGap(F32, 10, 3)));
        combine(
                "pre-reduced without dispatched weights",
                "give them to LowLatencyDispatchPlan",
                r -> r.inputs().preReduced(r.handle()));
        missing("pre-reduced rows of no handle", "handle", r -> r.inputs().preReduced(null));
        combine("out of too few tokens", "out", r -> r.home().out(r.bf16(9, 128)));
        combine("out has another hidden size", "out", r -> r.home().out(r.bf16(10, 64)));
        combine(
                "out lies in the RDMA buffer",
                "lies in the buffer (RDMA)",
                r -> r.home().out(r.inBuffer(BF16, 10, 128)));
        combine(
                "out has all rows at one address",
                "elements overlap",
                r -> r.home().out(Misuse.repeated(r.bf16(10, 128))));
        combine(
                "out is x",
                "out overlaps x",
                r -> r.home().out(r.outputs().select(0, 0).slice(0, 0, 10)));
        combine("out is F32", "out", r -> r.home().out(r.f32(10, 128)));
        combine("out has gaps", "out is BF16", r -> r.home().out(r.withColumnGap(BF16, 10, 128)));
        missing("no combined rows", "x", r -> r.home(null));
        missing("no weights", "topkWeights", r -> r.home(r.outputs(), r.topkIdx(), null));
        missing("no handle", "handle", r -> r.inputs().home(null));
        missing("no combine plan", "plan", r -> r.buffer().lowLatencyCombine(null));
    }

    private void others() {
        missing(
                "combine buffer of no handle",
                "handle",
                r -> r.buffer().getLowLatencyCombineBuffer(null));
        argument("mask of a rank that is none", "4", r -> r.buffer().updateMask(4, true));
        argument("mask of itself", "1", r -> r.buffer().updateMask(1, true));
        state(
                "a mode that is not open",
                "normal",
                r -> r.buffer().getDispatchLayout(r.topkIdx(), 8));
    }
}
