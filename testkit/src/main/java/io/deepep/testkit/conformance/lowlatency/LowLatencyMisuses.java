package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.DType.BF16;
import static io.deepep.DType.F32;
import static io.deepep.DType.FP8_E4M3;
import static io.deepep.DType.I32;
import static io.deepep.DType.I64;

import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.MisusedRank;
import io.deepep.testkit.conformance.Misuses;
import io.deepep.testkit.conformance.RankContext;
import java.util.stream.Stream;

/**
 * Low-latency calls that must be refused, over 4 ranks with 10 tokens of 128 channels and 3 of 8
 * experts.
 */
final class LowLatencyMisuses {
    static final LowLatencyShape SHAPE = new LowLatencyShape(2, 2, 10, 128, 3, 8);
    private static final int ROWS = 40;
    private static final int EXPERTS = 2;

    private LowLatencyMisuses() {}

    /** One rank that has dispatched: its inputs and the handle. */
    record Rank(LowLatencyRank inputs, LowLatencyHandle handle) implements MisusedRank {
        @Override
        public RankContext context() {
            return inputs.context();
        }

        Tensor inBuffer(DType dtype, long... shape) {
            return Misuse.inBuffer(context(), true, dtype, shape);
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

        Tensor outputs() {
            return inputs.outputs();
        }

        void dispatch(Tensor x, Tensor idx) {
            dispatch(LowLatencyDispatchPlan.builder(x, idx));
        }

        void dispatch(LowLatencyDispatchPlan.Builder plan) {
            buffer().lowLatencyDispatch(plan.build());
        }

        LowLatencyDispatchPlan.Builder good() {
            return inputs.plan(LowLatencyFormat.FP8);
        }

        void combine(Tensor x, Tensor idx, Tensor weights) {
            combine(LowLatencyCombinePlan.builder(x, idx, weights, handle));
        }

        void combine(LowLatencyCombinePlan.Builder plan) {
            buffer().lowLatencyCombine(plan.build());
        }

        LowLatencyCombinePlan.Builder home() {
            return inputs.home(handle);
        }
    }

    static Stream<Misuse<Rank>> all() {
        Misuses<Rank> misuses = new Misuses<>();
        dispatches(misuses);
        statistics(misuses);
        combinedRows(misuses);
        combines(misuses);
        others(misuses);
        return misuses.stream();
    }

    private static void dispatches(Misuses<Rank> misuses) {
        misuses.argument(
                "x has another hidden size",
                "256",
                r -> r.dispatch(r.tensor(BF16, 10, 256), r.topkIdx()));
        misuses.argument(
                "x is FP8", "x", r -> r.dispatch(r.tensor(FP8_E4M3, 10, 128), r.topkIdx()));
        misuses.argument(
                "x has one dimension", "x", r -> r.dispatch(r.tensor(BF16, 10), r.topkIdx()));
        misuses.argument(
                "too many tokens",
                "11",
                r -> r.dispatch(r.tensor(BF16, 11, 128), r.tensor(I64, 11, 3)));
        misuses.argument(
                "rows of x are not contiguous",
                "x",
                r ->
                        r.dispatch(
                                r.upload(
                                        HostTensors.withColumnGap(
                                                HostTensors.allocate(BF16, 10, 128))),
                                r.topkIdx()));
        misuses.argument(
                "x lies in the RDMA buffer",
                "lies in the buffer (RDMA)",
                r -> r.dispatch(r.inBuffer(BF16, 10, 128), r.topkIdx()));
        misuses.argument("x lies elsewhere", "x", r -> r.dispatch(r.elsewhere(r.x()), r.topkIdx()));
        misuses.argument("topkIdx is I32", "topkIdx", r -> r.dispatch(r.x(), r.tensor(I32, 10, 3)));
        misuses.argument(
                "topkIdx has too few rows", "topkIdx", r -> r.dispatch(r.x(), r.tensor(I64, 9, 3)));
        misuses.argument("too many selections", "4", r -> r.dispatch(r.x(), r.tensor(I64, 10, 4)));
        misuses.argument(
                "topkIdx lies elsewhere",
                "topkIdx",
                r -> r.dispatch(r.x(), r.elsewhere(r.topkIdx())));
        misuses.missing("no x", "x", r -> LowLatencyDispatchPlan.builder(null, r.topkIdx()));
        misuses.missing("no indices", "topkIdx", r -> LowLatencyDispatchPlan.builder(r.x(), null));
        misuses.argument(
                "dispatched weights of another shape",
                "topkWeights",
                r -> r.dispatch(r.good().topkWeights(r.tensor(F32, 10, 2))));
        misuses.argument(
                "dispatched weights are BF16",
                "topkWeights",
                r -> r.dispatch(r.good().topkWeights(r.tensor(BF16, 10, 3))));
        misuses.argument(
                "dispatched weights lie elsewhere",
                "topkWeights",
                r -> r.dispatch(r.good().topkWeights(r.elsewhere(r.weights()))));
        misuses.missing("no format", "what", r -> r.good().format(null));
        misuses.missing("no plan", "plan", r -> r.buffer().lowLatencyDispatch(null));
    }

    private static void statistics(Misuses<Rank> misuses) {
        misuses.argument(
                "counts of too many experts",
                "umulativeStats",
                r -> r.dispatch(r.good().cumulativeStats(r.tensor(I32, 3))));
        misuses.argument(
                "counts are I64",
                "umulativeStats",
                r -> r.dispatch(r.good().cumulativeStats(r.tensor(I64, EXPERTS))));
        misuses.argument(
                "waits of too few ranks",
                "aitCostStats",
                r -> r.dispatch(r.good().waitCostStats(r.tensor(I64, 3))));
        misuses.argument(
                "waits are I32",
                "aitCostStats",
                r -> r.dispatch(r.good().waitCostStats(r.tensor(I32, 4))));
        misuses.argument(
                "counts lie in the RDMA buffer",
                "cumulativeStats is I32[2]",
                r -> r.dispatch(r.good().cumulativeStats(r.inBuffer(I32, EXPERTS))));
        misuses.argument(
                "waits lie in the RDMA buffer",
                "waitCostStats is I64[4]",
                r -> r.dispatch(r.good().waitCostStats(r.inBuffer(I64, 4))));
        misuses.argument(
                "combine waits lie in the RDMA buffer",
                "waitCostStats is I64[4]",
                r -> r.combine(r.home().waitCostStats(r.inBuffer(I64, 4))));
        misuses.argument(
                "combine waits of too few ranks",
                "aitCostStats",
                r -> r.combine(r.home().waitCostStats(r.tensor(I64, 3))));
    }

    private static void combinedRows(Misuses<Rank> misuses) {
        misuses.argument(
                "combined rows of too few experts",
                "x",
                r -> r.combine(r.tensor(BF16, 1, ROWS, 128), r.topkIdx(), r.weights()));
        misuses.argument(
                "too few combined rows",
                "x",
                r -> r.combine(r.tensor(BF16, EXPERTS, ROWS - 1, 128), r.topkIdx(), r.weights()));
        misuses.argument(
                "combined rows are F32",
                "x",
                r -> r.combine(r.tensor(F32, EXPERTS, ROWS, 128), r.topkIdx(), r.weights()));
        misuses.argument(
                "combined rows lie elsewhere",
                "x",
                r -> r.combine(r.elsewhere(r.outputs()), r.topkIdx(), r.weights()));
    }

    private static void combines(Misuses<Rank> misuses) {
        misuses.argument(
                "indices of another shape",
                "topkIdx",
                r -> r.combine(r.outputs(), r.tensor(I64, 10, 2), r.weights()));
        misuses.argument(
                "weights of another shape",
                "topkWeights",
                r -> r.combine(r.outputs(), r.topkIdx(), r.tensor(F32, 10, 2)));
        misuses.argument(
                "weights are BF16",
                "topkWeights",
                r -> r.combine(r.outputs(), r.topkIdx(), r.tensor(BF16, 10, 3)));
        misuses.argument(
                "pre-reduced without dispatched weights",
                "give them to LowLatencyDispatchPlan",
                r -> r.combine(r.inputs().preReduced(r.handle())));
        misuses.missing(
                "pre-reduced rows of no handle", "handle", r -> r.inputs().preReduced(null));
        misuses.argument(
                "out of too few tokens",
                "out",
                r -> r.combine(r.home().out(r.tensor(BF16, 9, 128))));
        misuses.argument(
                "out lies in the RDMA buffer",
                "lies in the buffer (RDMA)",
                r -> r.combine(r.home().out(r.inBuffer(BF16, 10, 128))));
        misuses.argument(
                "out has all rows at one address",
                "elements overlap",
                r -> r.combine(r.home().out(Misuse.repeated(r.tensor(BF16, 10, 128)))));
        misuses.argument(
                "out is x",
                "out overlaps x",
                r -> {
                    Tensor expert = r.outputs().select(0, 0);
                    r.combine(r.home().out(expert.slice(0, 0, 10)));
                });
        misuses.argument("out is F32", "out", r -> r.combine(r.home().out(r.tensor(F32, 10, 128))));
        misuses.missing(
                "no combined rows",
                "x",
                r -> LowLatencyCombinePlan.builder(null, r.topkIdx(), r.weights(), r.handle()));
        misuses.missing(
                "no weights",
                "topkWeights",
                r -> LowLatencyCombinePlan.builder(r.outputs(), r.topkIdx(), null, r.handle()));
        misuses.missing("no handle", "handle", r -> r.inputs().home(null));
        misuses.missing("no combine plan", "plan", r -> r.buffer().lowLatencyCombine(null));
    }

    private static void others(Misuses<Rank> misuses) {
        misuses.missing(
                "combine buffer of no handle",
                "handle",
                r -> r.buffer().getLowLatencyCombineBuffer(null));
        misuses.argument("mask of a rank that is none", "4", r -> r.buffer().updateMask(4, true));
        misuses.argument("mask of itself", "1", r -> r.buffer().updateMask(1, true));
        misuses.state(
                "a mode that is not open",
                "normal",
                r -> r.buffer().getDispatchLayout(r.topkIdx(), 8));
    }
}
