package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misuse.argument;
import static io.deepep.testkit.conformance.Misuse.missing;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.Misuse;
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
    record Rank(LowLatencyRank inputs, LowLatencyHandle handle) {
        Tensor tensor(DType dtype, long... shape) {
            return inputs.context().upload(HostTensors.allocate(dtype, shape));
        }

        Tensor inBuffer(DType dtype, long... shape) {
            return Misuse.inBuffer(inputs.context(), true, dtype, shape);
        }

        Buffer buffer() {
            return inputs.context().buffer();
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
        return Stream.of(dispatches(), statistics(), combinedRows(), combines(), others())
                .flatMap(s -> s);
    }

    private static Stream<Misuse<Rank>> dispatches() {
        return Stream.of(
                argument(
                        "x has another hidden size",
                        "256",
                        r -> r.dispatch(r.tensor(DType.BF16, 10, 256), r.inputs().topkIdx())),
                argument(
                        "x is FP8",
                        "x",
                        r -> r.dispatch(r.tensor(DType.FP8_E4M3, 10, 128), r.inputs().topkIdx())),
                argument(
                        "x has one dimension",
                        "x",
                        r -> r.dispatch(r.tensor(DType.BF16, 10), r.inputs().topkIdx())),
                argument(
                        "too many tokens",
                        "11",
                        r -> r.dispatch(r.tensor(DType.BF16, 11, 128), r.tensor(DType.I64, 11, 3))),
                argument(
                        "rows of x are not contiguous",
                        "x",
                        r ->
                                r.dispatch(
                                        r.inputs()
                                                .context()
                                                .upload(
                                                        HostTensors.withColumnGap(
                                                                HostTensors.allocate(
                                                                        DType.BF16, 10, 128))),
                                        r.inputs().topkIdx())),
                argument(
                        "x lies in the RDMA buffer",
                        "lies in the buffer (RDMA)",
                        r -> r.dispatch(r.inBuffer(DType.BF16, 10, 128), r.inputs().topkIdx())),
                argument(
                        "x lies elsewhere",
                        "x",
                        r ->
                                r.dispatch(
                                        Misuse.elsewhere(r.inputs().context(), r.inputs().x()),
                                        r.inputs().topkIdx())),
                argument(
                        "topkIdx is I32",
                        "topkIdx",
                        r -> r.dispatch(r.inputs().x(), r.tensor(DType.I32, 10, 3))),
                argument(
                        "topkIdx has too few rows",
                        "topkIdx",
                        r -> r.dispatch(r.inputs().x(), r.tensor(DType.I64, 9, 3))),
                argument(
                        "too many selections",
                        "4",
                        r -> r.dispatch(r.inputs().x(), r.tensor(DType.I64, 10, 4))),
                argument(
                        "topkIdx lies elsewhere",
                        "topkIdx",
                        r ->
                                r.dispatch(
                                        r.inputs().x(),
                                        Misuse.elsewhere(
                                                r.inputs().context(), r.inputs().topkIdx()))),
                missing(
                        "no x",
                        "x",
                        r -> LowLatencyDispatchPlan.builder(null, r.inputs().topkIdx())),
                missing(
                        "no indices",
                        "topkIdx",
                        r -> LowLatencyDispatchPlan.builder(r.inputs().x(), null)),
                argument(
                        "dispatched weights of another shape",
                        "topkWeights",
                        r -> r.dispatch(r.good().topkWeights(r.tensor(DType.F32, 10, 2)))),
                argument(
                        "dispatched weights are BF16",
                        "topkWeights",
                        r -> r.dispatch(r.good().topkWeights(r.tensor(DType.BF16, 10, 3)))),
                argument(
                        "dispatched weights lie elsewhere",
                        "topkWeights",
                        r ->
                                r.dispatch(
                                        r.good()
                                                .topkWeights(
                                                        Misuse.elsewhere(
                                                                r.inputs().context(),
                                                                r.inputs().weights())))),
                missing("no format", "what", r -> r.good().format(null)),
                missing("no plan", "plan", r -> r.buffer().lowLatencyDispatch(null)));
    }

    private static Stream<Misuse<Rank>> statistics() {
        return Stream.of(
                argument(
                        "counts of too many experts",
                        "umulativeStats",
                        r -> r.dispatch(r.good().cumulativeStats(r.tensor(DType.I32, 3)))),
                argument(
                        "counts are I64",
                        "umulativeStats",
                        r -> r.dispatch(r.good().cumulativeStats(r.tensor(DType.I64, EXPERTS)))),
                argument(
                        "waits of too few ranks",
                        "aitCostStats",
                        r -> r.dispatch(r.good().waitCostStats(r.tensor(DType.I64, 3)))),
                argument(
                        "waits are I32",
                        "aitCostStats",
                        r -> r.dispatch(r.good().waitCostStats(r.tensor(DType.I32, 4)))),
                argument(
                        "counts lie in the RDMA buffer",
                        "cumulativeStats is I32[2]",
                        r -> r.dispatch(r.good().cumulativeStats(r.inBuffer(DType.I32, EXPERTS)))),
                argument(
                        "waits lie in the RDMA buffer",
                        "waitCostStats is I64[4]",
                        r -> r.dispatch(r.good().waitCostStats(r.inBuffer(DType.I64, 4)))),
                argument(
                        "combine waits lie in the RDMA buffer",
                        "waitCostStats is I64[4]",
                        r -> r.combine(r.home().waitCostStats(r.inBuffer(DType.I64, 4)))),
                argument(
                        "combine waits of too few ranks",
                        "aitCostStats",
                        r -> r.combine(r.home().waitCostStats(r.tensor(DType.I64, 3)))));
    }

    private static Stream<Misuse<Rank>> combinedRows() {
        return Stream.of(
                argument(
                        "combined rows of too few experts",
                        "x",
                        r ->
                                r.combine(
                                        r.tensor(DType.BF16, 1, ROWS, 128),
                                        r.inputs().topkIdx(),
                                        r.inputs().weights())),
                argument(
                        "too few combined rows",
                        "x",
                        r ->
                                r.combine(
                                        r.tensor(DType.BF16, EXPERTS, ROWS - 1, 128),
                                        r.inputs().topkIdx(),
                                        r.inputs().weights())),
                argument(
                        "combined rows are F32",
                        "x",
                        r ->
                                r.combine(
                                        r.tensor(DType.F32, EXPERTS, ROWS, 128),
                                        r.inputs().topkIdx(),
                                        r.inputs().weights())),
                argument(
                        "combined rows lie elsewhere",
                        "x",
                        r ->
                                r.combine(
                                        Misuse.elsewhere(
                                                r.inputs().context(), r.inputs().outputs()),
                                        r.inputs().topkIdx(),
                                        r.inputs().weights())));
    }

    private static Stream<Misuse<Rank>> combines() {
        return Stream.of(
                argument(
                        "indices of another shape",
                        "topkIdx",
                        r ->
                                r.combine(
                                        r.inputs().outputs(),
                                        r.tensor(DType.I64, 10, 2),
                                        r.inputs().weights())),
                argument(
                        "weights of another shape",
                        "topkWeights",
                        r ->
                                r.combine(
                                        r.inputs().outputs(),
                                        r.inputs().topkIdx(),
                                        r.tensor(DType.F32, 10, 2))),
                argument(
                        "weights are BF16",
                        "topkWeights",
                        r ->
                                r.combine(
                                        r.inputs().outputs(),
                                        r.inputs().topkIdx(),
                                        r.tensor(DType.BF16, 10, 3))),
                argument(
                        "pre-reduced without dispatched weights",
                        "give them to LowLatencyDispatchPlan",
                        r -> r.combine(r.inputs().preReduced(r.handle()))),
                missing(
                        "pre-reduced rows of no handle",
                        "handle",
                        r -> r.inputs().preReduced(null)),
                argument(
                        "out of too few tokens",
                        "out",
                        r -> r.combine(r.home().out(r.tensor(DType.BF16, 9, 128)))),
                argument(
                        "out lies in the RDMA buffer",
                        "lies in the buffer (RDMA)",
                        r -> r.combine(r.home().out(r.inBuffer(DType.BF16, 10, 128)))),
                argument(
                        "out has all rows at one address",
                        "lie over one another",
                        r ->
                                r.combine(
                                        r.home()
                                                .out(
                                                        Misuse.repeated(
                                                                r.tensor(DType.BF16, 10, 128))))),
                argument(
                        "out is x",
                        "out overlaps x",
                        r -> {
                            Tensor expert = r.inputs().outputs().select(0, 0);
                            r.combine(r.home().out(expert.slice(0, 0, 10)));
                        }),
                argument(
                        "out is F32",
                        "out",
                        r -> r.combine(r.home().out(r.tensor(DType.F32, 10, 128)))),
                missing(
                        "no combined rows",
                        "x",
                        r ->
                                LowLatencyCombinePlan.builder(
                                        null,
                                        r.inputs().topkIdx(),
                                        r.inputs().weights(),
                                        r.handle())),
                missing(
                        "no weights",
                        "topkWeights",
                        r ->
                                LowLatencyCombinePlan.builder(
                                        r.inputs().outputs(),
                                        r.inputs().topkIdx(),
                                        null,
                                        r.handle())),
                missing("no handle", "handle", r -> r.inputs().home(null)),
                missing("no combine plan", "plan", r -> r.buffer().lowLatencyCombine(null)));
    }

    private static Stream<Misuse<Rank>> others() {
        return Stream.of(
                missing(
                        "combine buffer of no handle",
                        "handle",
                        r -> r.buffer().getLowLatencyCombineBuffer(null)),
                argument(
                        "mask of a rank that is none",
                        "4",
                        r -> r.buffer().lowLatencyUpdateMask(4, true)),
                argument("mask of itself", "1", r -> r.buffer().lowLatencyUpdateMask(1, true)),
                new Misuse<>(
                        "a mode that is not open",
                        IllegalStateException.class,
                        "normal",
                        r -> r.buffer().getDispatchLayout(r.inputs().topkIdx(), 8)));
    }
}
