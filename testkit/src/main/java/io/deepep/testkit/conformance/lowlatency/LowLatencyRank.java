package io.deepep.testkit.conformance.lowlatency;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.ExchangeRank;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.LowLatencyWorld;

/**
 * One rank's share of a {@link LowLatencyWorld}. Unless a format is given, tokens travel as FP8 and
 * results as BF16.
 */
public final class LowLatencyRank extends ExchangeRank<LowLatencyWorld, LowLatencyHandle> {
    private final Tensor outputs;

    public LowLatencyRank(RankContext context, LowLatencyWorld world) {
        super(context, world);
        outputs = context().upload(world.outputs().get(context.rank()));
    }

    public Tensor outputs() {
        return outputs;
    }

    /** Writes another exchange of the same shape over this one. */
    public void load(LowLatencyRank other) {
        loadInputs(other);
        context().copy(other.outputs, outputs);
    }

    public LowLatencyDispatchPlan.Builder plan(LowLatencyFormat format) {
        return LowLatencyDispatchPlan.builder(x(), topkIdx()).format(format);
    }

    public LowLatencyCombinePlan.Builder home(LowLatencyHandle handle) {
        return home(outputs, handle);
    }

    /** A combine of other rows than the expert outputs. */
    LowLatencyCombinePlan.Builder home(Tensor rows, LowLatencyHandle handle) {
        return LowLatencyCombinePlan.builder(rows, topkIdx(), weights(), handle);
    }

    /** A dispatch whose combine may be pre-reduced. */
    public LowLatencyDispatchPlan.Builder weighted(LowLatencyFormat format) {
        return plan(format).topkWeights(weights());
    }

    public LowLatencyCombinePlan.Builder preReduced(LowLatencyHandle handle) {
        return LowLatencyCombinePlan.preReduced(outputs, topkIdx(), handle);
    }

    public LowLatencyDispatchResult dispatch(LowLatencyFormat format) {
        return dispatch(plan(format).build());
    }

    public LowLatencyDispatchResult dispatchWeighted(LowLatencyFormat format) {
        return dispatch(weighted(format).build());
    }

    /** Makes both halves of a dispatch and compares. */
    public LowLatencyDispatchResult dispatch(LowLatencyDispatchPlan plan) {
        LowLatencyDispatchResult result = context().buffer().lowLatencyDispatch(plan);
        receive(result.receiveHook());
        return verify(result, plan.format());
    }

    /** Compares and returns a dispatch whose hook, if any, has run. */
    public LowLatencyDispatchResult verify(
            LowLatencyDispatchResult result, LowLatencyFormat format) {
        result.event().synchronize();
        world().check(format).checkDispatch(context().rank(), result, context()::download);
        return result;
    }

    @Override
    public LowLatencyHandle newHandle() {
        return dispatch(LowLatencyFormat.FP8).handle();
    }

    @Override
    public Tensor combine(LowLatencyHandle handle) {
        return combine(home(handle));
    }

    /** Combines the expert outputs in a format and compares. */
    public Tensor combine(LowLatencyHandle handle, CombineFormat format) {
        return combine(home(handle).format(format));
    }

    public Tensor combinePreReduced(LowLatencyHandle handle) {
        return combine(preReduced(handle));
    }

    /** Combines pre-reduced in a format and compares. */
    public Tensor combinePreReduced(LowLatencyHandle handle, CombineFormat format) {
        return combine(preReduced(handle).format(format));
    }

    /** Combines as {@code plan} says and compares. */
    public Tensor combine(LowLatencyCombinePlan.Builder plan) {
        return combine(plan.build());
    }

    /** Makes both halves of a combine, compares, and returns it on the host. */
    Tensor combine(LowLatencyCombinePlan plan) {
        LowLatencyCombineResult result = context().buffer().lowLatencyCombine(plan);
        receive(result.receiveHook());
        return verify(result, plan);
    }

    /** Compares a combine of {@code plan} whose hook, if any, has run; returns it on the host. */
    Tensor verify(LowLatencyCombineResult result, LowLatencyCombinePlan plan) {
        return verify(result, plan.format(), plan.isPreReduced());
    }

    /** Compares a combine of the expert outputs and returns it on the host. */
    public Tensor verify(LowLatencyCombineResult result) {
        return verify(result, CombineFormat.BF16, false);
    }

    Tensor verify(LowLatencyCombineResult result, CombineFormat format, boolean preReduced) {
        result.event().synchronize();
        Tensor combined = context().download(result.x());
        world().checkCombine(context().rank(), format, preReduced, combined);
        return combined;
    }

    /** Sends the expert outputs home; the hook receives what the others send. */
    LowLatencyCombineResult sendHome(LowLatencyHandle handle) {
        return context().buffer().lowLatencyCombine(home(handle).receiveHook(true).build());
    }

    @Override
    public LowLatencyDispatchPlan planOf(Tensor idx) {
        return LowLatencyDispatchPlan.builder(x(), idx).build();
    }

    /** Dispatches, combines the expert outputs, compares both, and returns what was combined. */
    public Tensor roundTrip(LowLatencyFormat format) {
        return combine(dispatch(format).handle());
    }

    /** The buffer's combine input of {@code handle}, filled with the expert outputs. */
    public Tensor filledCombineBuffer(LowLatencyHandle handle) {
        Buffer buffer = context().buffer();
        Tensor own = buffer.getLowLatencyCombineBuffer(handle);
        for (int expert = 0; expert < world().routing().numLocalExperts(); expert++) {
            int count = world().oracle().rows(context().rank(), expert).size();
            Tensor made =
                    world().outputs().get(context().rank()).select(0, expert).slice(0, 0, count);
            context().backend().write(made, own.select(0, expert).slice(0, 0, count));
        }
        return own;
    }
}
