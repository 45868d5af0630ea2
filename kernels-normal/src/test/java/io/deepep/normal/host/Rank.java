package io.deepep.normal.host;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.spi.Operation;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.List;

/** One rank of a {@link RankGroup}, whose calls run to their end. */
record Rank(EpTopology topology, HostNormalKernels kernels) {
    int rank() {
        return topology.rank();
    }

    DispatchResult dispatch(DispatchPlan plan) {
        return run(kernels.prepareDispatch(plan));
    }

    DispatchResult dispatch(DispatchPlan.Builder plan) {
        return run(prepare(plan));
    }

    Operation<DispatchResult> prepare(DispatchPlan.Builder plan) {
        return kernels.prepareDispatch(plan.build());
    }

    CombineResult combine(CombinePlan.Builder plan) {
        return run(prepare(plan));
    }

    Operation<CombineResult> prepare(CombinePlan.Builder plan) {
        return kernels.prepareCombine(plan.build());
    }

    static <R> R run(Operation<R> operation) {
        operation.begin();
        operation.complete();
        return operation.result(Event.completed(), null);
    }

    /** A dispatch of tokens whose rows lie apart, with indices and weights. */
    DispatchPlan.Builder plan(NormalWorld world) {
        Tokens tokens = world.tokens().get(rank());
        Routing routing = world.routing();
        return DispatchPlan.builder(HostTensors.withRowGap(tokens.x(), 24), tokens.scales())
                .topk(
                        routing.topkIdxTensor(rank()),
                        routing.weightsTensor(rank()),
                        routing.numExperts());
    }

    /** Compares. */
    void verify(NormalDispatchCheck check, DispatchResult got) {
        check.check(rank(), got, tensor -> tensor);
    }

    /** Combines the expert outputs, which lie at {@code x}, with biases and weights; compares. */
    void combine(NormalWorld world, NormalDispatchCheck check, DispatchHandle handle, Tensor x) {
        Tensor first = world.bias(rank(), 0);
        Tensor second = world.bias(rank(), 1);
        List<Tensor> weights = world.weights(check);
        CombineResult home =
                combine(
                        CombinePlan.builder(x, handle)
                                .topkWeights(weights.get(rank()))
                                .bias(first, second));
        NormalCombineOracle oracle = NormalCombineOracle.of(check, topology.numNvlRanks());
        List<Tensor> sent = world.outputs(check);
        oracle.check(rank(), CombineFormat.BF16, sent, List.of(first, second), home.x());
        oracle.checkWeights(rank(), weights, home.topkWeights());
    }
}
