package io.deepep.testkit.conformance.normal;

import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.RankContext;
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
        int numTopk = world.routing().numTopk();
        x = context.upload(world.tokens().get(rank).x());
        scales = context.upload(world.tokens().get(rank).scales());
        topkIdx = context.upload(HostTensors.i64(world.routing().topkIdx(rank), numTopk));
        weights = context.upload(HostTensors.f32(world.routing().weights(rank), numTopk));
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

    /**
     * Compares a combine of the expert outputs, with these biases (host tensors), and returns it on
     * the host.
     */
    public Tensor verify(CombineResult result, NormalDispatchCheck check, Tensor... biases) {
        return verifySums(result, check, world.outputs(check), biases);
    }

    /** Compares a combine of the expert outputs in FP8, bit for bit; returns it on the host. */
    public Tensor verifyFp8(CombineResult result, NormalDispatchCheck check, Tensor... biases) {
        return verifyFp8(result, check, world.outputs(check), biases);
    }

    /** Compares a combine of any rows in FP8, bit for bit. */
    public Tensor verifyFp8(
            CombineResult result, NormalDispatchCheck check, List<Tensor> sent, Tensor... biases) {
        result.event().synchronize();
        Tensor combined = context.download(result.x());
        world.combineOracle(context.topology(), check)
                .checkFp8(context.rank(), sent, List.of(biases), combined);
        return combined;
    }

    /** Combines the expert outputs in FP8 and compares. */
    public Tensor combineFp8(DispatchHandle handle, NormalDispatchCheck check) {
        CombinePlan plan =
                CombinePlan.builder(outputs(check), handle).format(CombineFormat.FP8).build();
        return verifyFp8(context.buffer().combine(plan, CallOptions.sync()), check);
    }

    /** Compares a combine of any rows. */
    public Tensor verifySums(
            CombineResult result, NormalDispatchCheck check, List<Tensor> sent, Tensor... biases) {
        result.event().synchronize();
        Tensor combined = context.download(result.x());
        world.combineOracle(context.topology(), check)
                .check(context.rank(), sent, List.of(biases), combined);
        return combined;
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
