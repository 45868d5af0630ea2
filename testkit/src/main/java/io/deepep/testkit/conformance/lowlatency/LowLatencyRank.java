package io.deepep.testkit.conformance.lowlatency;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.LowLatencyWorld;

/**
 * One rank's share of a {@link LowLatencyWorld}: its inputs on its device, and its results held
 * against the oracle.
 */
public final class LowLatencyRank {
    private final RankContext context;
    private final LowLatencyWorld world;
    private final Tensor x;
    private final Tensor topkIdx;
    private final Tensor weights;
    private final Tensor outputs;

    public LowLatencyRank(RankContext context, LowLatencyWorld world) {
        this.context = context;
        this.world = world;
        int rank = context.rank();
        x = context.upload(world.tokens().get(rank).x());
        topkIdx = context.upload(world.routing().topkIdxTensor(rank));
        weights = context.upload(world.routing().weightsTensor(rank));
        outputs = context.upload(world.outputs().get(rank));
    }

    public RankContext context() {
        return context;
    }

    public LowLatencyWorld world() {
        return world;
    }

    public Tensor x() {
        return x;
    }

    public Tensor topkIdx() {
        return topkIdx;
    }

    public Tensor weights() {
        return weights;
    }

    public Tensor outputs() {
        return outputs;
    }

    /** Writes another exchange of the same shape over this one. */
    public void load(LowLatencyRank other) {
        context.copy(other.x, x);
        context.copy(other.topkIdx, topkIdx);
        context.copy(other.weights, weights);
        context.copy(other.outputs, outputs);
    }

    public LowLatencyDispatchPlan.Builder plan(LowLatencyFormat format) {
        return LowLatencyDispatchPlan.builder(x, topkIdx).format(format);
    }

    public LowLatencyCombinePlan.Builder home(LowLatencyHandle handle) {
        return LowLatencyCombinePlan.builder(outputs, topkIdx, weights, handle);
    }

    /** A dispatch whose combine may be pre-reduced. */
    public LowLatencyDispatchPlan.Builder weighted(LowLatencyFormat format) {
        return plan(format).topkWeights(weights);
    }

    public LowLatencyCombinePlan.Builder preReduced(LowLatencyHandle handle) {
        return LowLatencyCombinePlan.preReduced(outputs, topkIdx, handle);
    }

    public LowLatencyDispatchResult dispatchWeighted(LowLatencyFormat format) {
        return verify(context.buffer().lowLatencyDispatch(weighted(format).build()), format);
    }

    public LowLatencyDispatchResult dispatch(LowLatencyFormat format) {
        return verify(context.buffer().lowLatencyDispatch(plan(format).build()), format);
    }

    /** Compares and returns a dispatch whose hook, if any, has run. */
    public LowLatencyDispatchResult verify(
            LowLatencyDispatchResult result, LowLatencyFormat format) {
        result.event().synchronize();
        world.check(format).checkDispatch(context.rank(), result, context::download);
        return result;
    }

    /** Combines the expert outputs and compares. */
    public Tensor combine(LowLatencyHandle handle) {
        return combine(home(handle));
    }

    /** Combines the expert outputs as {@code plan} says and compares. */
    public Tensor combine(LowLatencyCombinePlan.Builder plan) {
        return verify(context.buffer().lowLatencyCombine(plan.build()));
    }

    /** Makes both halves of a call and waits for their end. */
    public void call(LowLatencyDispatchPlan plan) {
        LowLatencyDispatchResult result = context.buffer().lowLatencyDispatch(plan);
        finish(result.event(), result.receiveHook());
    }

    /** Makes both halves of a call and waits for their end. */
    public void call(LowLatencyCombinePlan plan) {
        LowLatencyCombineResult result = context.buffer().lowLatencyCombine(plan);
        finish(result.event(), result.receiveHook());
    }

    private static void finish(Event sent, Runnable receiveHook) {
        sent.synchronize();
        if (receiveHook != null) {
            receiveHook.run();
        }
    }

    /** Compares a combine of the expert outputs and returns it on the host. */
    public Tensor verify(LowLatencyCombineResult result) {
        return verify(result, CombineFormat.BF16);
    }

    /** Compares a combine whose rows travelled in a format. */
    public Tensor verify(LowLatencyCombineResult result, CombineFormat format) {
        return verify(result, format, false);
    }

    private Tensor verify(
            LowLatencyCombineResult result, CombineFormat format, boolean preReduced) {
        result.event().synchronize();
        Tensor combined = context.download(result.x());
        world.checkCombine(context.rank(), format, preReduced, combined);
        return combined;
    }

    /** Compares a pre-reduced combine, bit for bit, and returns it on the host. */
    public Tensor verifyPreReduced(LowLatencyCombineResult result) {
        return verifyPreReduced(result, CombineFormat.BF16);
    }

    /** Compares a pre-reduced combine whose sums travelled in a format. */
    public Tensor verifyPreReduced(LowLatencyCombineResult result, CombineFormat format) {
        return verify(result, format, true);
    }

    public Tensor combinePreReduced(LowLatencyHandle handle) {
        return verifyPreReduced(context.buffer().lowLatencyCombine(preReduced(handle).build()));
    }

    /** Combines the expert outputs in a format and compares. */
    public Tensor combine(LowLatencyHandle handle, CombineFormat format) {
        LowLatencyCombinePlan plan = home(handle).format(format).build();
        return verify(context.buffer().lowLatencyCombine(plan), format);
    }

    /** Combines pre-reduced in a format and compares. */
    public Tensor combinePreReduced(LowLatencyHandle handle, CombineFormat format) {
        LowLatencyCombinePlan plan = preReduced(handle).format(format).build();
        return verifyPreReduced(context.buffer().lowLatencyCombine(plan), format);
    }

    /** Dispatches, combines the expert outputs, compares both, and returns what was combined. */
    public Tensor roundTrip(LowLatencyFormat format) {
        return combine(dispatch(format).handle());
    }

    /** The buffer's combine input of {@code handle}, filled with the expert outputs. */
    public Tensor filledCombineBuffer(LowLatencyHandle handle) {
        Buffer buffer = context.buffer();
        Tensor own = buffer.getLowLatencyCombineBuffer(handle);
        for (int expert = 0; expert < world.routing().numLocalExperts(); expert++) {
            int count = world.oracle().rows(context.rank(), expert).size();
            Tensor made = world.outputs().get(context.rank()).select(0, expert).slice(0, 0, count);
            context.backend().write(made, own.select(0, expert).slice(0, 0, count));
        }
        return own;
    }
}
