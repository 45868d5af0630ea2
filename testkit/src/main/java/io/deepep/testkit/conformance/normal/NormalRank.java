package io.deepep.testkit.conformance.normal;

import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import java.util.List;

/**
 * One rank's share of a {@link NormalWorld}: its inputs on its device, and its results compared
 * with the oracle.
 */
public final class NormalRank {
    private final RankContext context;
    private final NormalWorld world;
    private final Tensor x;
    private final Tensor scales;
    private final Tensor topkIdx;
    private final Tensor weights;

    public NormalRank(RankContext context, NormalWorld world) {
        this.context = context;
        this.world = world;
        int rank = context.rank();
        x = context.upload(world.tokens().get(rank).x());
        scales = context.upload(world.tokens().get(rank).scales());
        topkIdx = context.upload(world.routing().topkIdxTensor(rank));
        weights = context.upload(world.routing().weightsTensor(rank));
    }

    public RankContext context() {
        return context;
    }

    public NormalWorld world() {
        return world;
    }

    public Tensor x() {
        return x;
    }

    public Tensor scales() {
        return scales;
    }

    public Tensor topkIdx() {
        return topkIdx;
    }

    public Tensor weights() {
        return weights;
    }

    /** Writes the inputs of another exchange of the same shape over this one's. */
    public void load(NormalRank other) {
        context.copy(other.x, x);
        if (scales != null) {
            context.copy(other.scales, scales);
        }
        context.copy(other.topkIdx, topkIdx);
        context.copy(other.weights, weights);
    }

    /** With indices and weights. */
    public DispatchPlan.Builder plan() {
        return bare().topk(topkIdx, weights, world.routing().numExperts());
    }

    /** Without routing. */
    public DispatchPlan.Tokens bare() {
        return DispatchPlan.builder(x, scales);
    }

    /** Makes a call and waits for its end. */
    public void call(DispatchPlan plan) {
        context.buffer().dispatch(plan).event().synchronize();
    }

    /** Makes a call and waits for its end. */
    public void call(CombinePlan plan) {
        context.buffer().combine(plan).event().synchronize();
    }

    /** Dispatches and compares. */
    public DispatchResult dispatch(DispatchPlan.Builder plan, NormalDispatchCheck check) {
        return verify(context.buffer().dispatch(plan.build()), check);
    }

    /** Compares and returns a dispatch's result. */
    public DispatchResult verify(DispatchResult result, NormalDispatchCheck check) {
        result.event().synchronize();
        check.check(context.rank(), result, context::download);
        return result;
    }

    /** Dispatches as {@code plan} says, combines the expert outputs, and compares both. */
    public void roundTrip(DispatchPlan.Builder plan, NormalDispatchCheck check) {
        combine(dispatch(plan, check).handle(), check);
    }

    /** This rank's expert outputs for the rows of {@code check}, on the device. */
    public Tensor outputs(NormalDispatchCheck check) {
        return context.upload(world.outputs(check).get(context.rank()));
    }

    /** Combines the expert outputs and compares. */
    public Tensor combine(DispatchHandle handle, NormalDispatchCheck check) {
        CombinePlan plan = CombinePlan.builder(outputs(check), handle).build();
        return verify(context.buffer().combine(plan, CallOptions.sync()), check);
    }

    /** Combines the expert outputs in FP8 and compares. */
    public Tensor combineFp8(DispatchHandle handle, NormalDispatchCheck check) {
        CombinePlan plan =
                CombinePlan.builder(outputs(check), handle).format(CombineFormat.FP8).build();
        return verifyFp8(context.buffer().combine(plan, CallOptions.sync()), check);
    }

    /**
     * Compares a combine of the expert outputs, with these biases (host tensors), and returns it on
     * the host.
     */
    public Tensor verify(CombineResult result, NormalDispatchCheck check, Tensor... biases) {
        return verify(result, check, CombineFormat.BF16, world.outputs(check), biases);
    }

    /** Compares a combine of the expert outputs in FP8, bit for bit; returns it on the host. */
    public Tensor verifyFp8(CombineResult result, NormalDispatchCheck check, Tensor... biases) {
        return verify(result, check, CombineFormat.FP8, world.outputs(check), biases);
    }

    /** Compares a combine of any rows. */
    public Tensor verify(
            CombineResult result,
            NormalDispatchCheck check,
            CombineFormat format,
            List<Tensor> sent,
            Tensor... biases) {
        result.event().synchronize();
        Tensor combined = context.download(result.x());
        world.combineOracle(context.topology(), check)
                .check(context.rank(), format, sent, List.of(biases), combined);
        return combined;
    }

    /** Compares the weights of a combine that was given those of {@code given}. */
    public void verifyWeights(CombineResult result, NormalDispatchCheck check, List<Tensor> given) {
        world.combineOracle(context.topology(), check)
                .checkWeights(context.rank(), given, context.download(result.topkWeights()));
    }

    /**
     * Dispatches with indices and weights, combines the expert outputs, compares both, and returns
     * what was combined.
     */
    public Tensor roundTrip() {
        NormalDispatchCheck check = world.check();
        return combine(dispatch(plan(), check).handle(), check);
    }
}
