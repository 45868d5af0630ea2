package io.deepep.testkit.conformance;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.DispatchPlan;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.Plan;
import io.deepep.Tensor;
import io.deepep.testkit.exchange.ExchangeWorld;

/**
 * One rank's share of an exchange: its inputs on its device, and calls of which the results are
 * compared with the oracle.
 *
 * @param <W> the exchange
 * @param <H> what a dispatch gives to combines
 */
public abstract class ExchangeRank<W extends ExchangeWorld, H> {
    private final RankContext context;
    private final W world;
    private final Tensor x;
    private final Tensor topkIdx;
    private final Tensor weights;

    protected ExchangeRank(RankContext context, W world) {
        this.context = context;
        this.world = world;
        int rank = context.rank();
        x = context.upload(world.tokens().get(rank).x());
        topkIdx = context.upload(world.routing().topkIdxTensor(rank));
        weights = context.upload(world.routing().weightsTensor(rank));
    }

    /** The same rank with the same inputs. */
    protected ExchangeRank(ExchangeRank<W, H> same) {
        context = same.context;
        world = same.world;
        x = same.x;
        topkIdx = same.topkIdx;
        weights = same.weights;
    }

    public final RankContext context() {
        return context;
    }

    public final W world() {
        return world;
    }

    public final Tensor x() {
        return x;
    }

    public final Tensor topkIdx() {
        return topkIdx;
    }

    public final Tensor weights() {
        return weights;
    }

    /** Writes tokens, indices and weights of another exchange of the same shape over this one's. */
    protected final void loadInputs(ExchangeRank<W, H> other) {
        context.copy(other.x, x);
        context.copy(other.topkIdx, topkIdx);
        context.copy(other.weights, weights);
    }

    /** Has token 3 of the rank that errs select an expert that there is not. */
    public final void loadBadExpert() {
        if (context.isCulprit()) {
            Tensor idx = context.download(topkIdx);
            idx.setLong(world.routing().numExperts(), 3, 1);
            context.backend().write(idx, topkIdx);
        }
    }

    /** A dispatch with other indices than those of the exchange. */
    public abstract Plan planOf(Tensor idx);

    /** Makes a call, both halves of it, and waits for its end. */
    public final void call(Plan plan) {
        call(plan, CallOptions.sync());
    }

    public final void call(Plan plan, CallOptions options) {
        Buffer buffer = context.buffer();
        switch (plan) {
            case DispatchPlan dispatch -> buffer.dispatch(dispatch, options).event().synchronize();
            case CombinePlan combine -> buffer.combine(combine, options).event().synchronize();
            case LowLatencyDispatchPlan dispatch -> {
                LowLatencyDispatchResult result = buffer.lowLatencyDispatch(dispatch, options);
                result.event().synchronize();
                receive(result.receiveHook());
            }
            case LowLatencyCombinePlan combine -> {
                LowLatencyCombineResult result = buffer.lowLatencyCombine(combine, options);
                result.event().synchronize();
                receive(result.receiveHook());
            }
        }
    }

    /** Runs a hook; null if the call was made without. */
    public static void receive(Runnable hook) {
        if (hook != null) {
            hook.run();
        }
    }

    /** Dispatches, compares, and returns the handle. */
    public abstract H newHandle();

    /** Combines the expert outputs, compares, and returns on the host what was combined. */
    public abstract Tensor combine(H handle);

    /** Dispatches, combines the expert outputs, compares both, and returns what was combined. */
    public final Tensor roundTrip() {
        return combine(newHandle());
    }
}
