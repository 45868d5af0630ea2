package io.deepep.testkit.conformance.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import java.util.List;

/** What becomes of a dispatch's plan, handle and received rows over several calls. */
@BackendSuite
public record NormalReuseConformance(TestBackend backend) implements RankGroup {
    private static final NormalShape RECEIVED =
            new NormalShape(2, 2, 17, 384, DType.FP8_E4M3, 3, 8);

    @Override
    public void limit(Buffer.Builder builder) {
        RECEIVED.limit(builder);
    }

    /**
     * A handle serves again and again, also when other routings have gone through the buffer
     * meanwhile.
     */
    @Cases(from = "all")
    public void cachedHandle(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context, 5);
        NormalRank interloper = shape.rank(context, 6);
        DispatchResult first = rank.dispatch();
        NormalRank cached = rank.expecting(rank.check().withoutTopk());
        DispatchPlan again = rank.bare().cached(first.handle()).build();
        for (int round = 0; round < 3; round++) {
            interloper.roundTrip();
            DispatchResult result = cached.verify(context.buffer().dispatch(again));
            cached.combine(result.handle());
            rank.combine(first.handle());
        }
    }

    /** A cached dispatch has the layout of its handle, and says where experts begin. */
    @Cases(from = "few")
    public void cachedExpandedHandle(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context, 5);
        NormalRank expanded = rank.expecting(rank.check().expanded(4));
        DispatchPlan again = rank.bare().cached(expanded.newHandle()).build();
        NormalRank cached = rank.expecting(rank.check().expanded(4).withoutTopk());
        cached.verify(context.buffer().dispatch(again));
    }

    /** What was received as a copy survives later dispatches of other plans. */
    @Cases(from = "few")
    public void copyOutlivesOtherDispatches(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context, 5);
        NormalRank interloper = shape.rank(context, 6);
        DispatchPlan.Builder plan = rank.plan().receive(DispatchPlan.Receive.COPY);
        DispatchResult copy = rank.dispatch(plan);
        interloper.roundTrip();
        interloper.roundTrip();
        rank.verify(copy);
        rank.combine(copy.handle());
    }

    /** Views and copies of every layout of rows have the same content. */
    @Cases({"2, 2, VIEW", "2, 2, COPY"})
    public void receivedAs(DispatchPlan.Receive how, RankContext context) {
        NormalRank rank = RECEIVED.raggedRank(context);
        NormalWorld world = rank.world();
        int rows = world.limits().recvCapacity(world.routing().numRanks());
        NormalDispatchCheck exact = rank.check();
        for (NormalDispatchCheck form : List.of(exact, exact.worstCase(rows), exact.expanded(4))) {
            NormalRank each = rank.expecting(form);
            each.dispatch(each.plan().receive(how));
        }
    }

    @Cases(from = "few")
    public void stridedInputs(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        NormalWorld world = rank.world();
        Tensor hostX = world.tokens().get(context.rank()).x();
        Tensor x = context.upload(HostTensors.withRowGap(hostX, 24));
        Tensor hostScales = world.tokens().get(context.rank()).scales();
        Tensor scales =
                hostScales == null ? null : context.upload(HostTensors.columnMajor(hostScales));
        DispatchPlan.Builder plan =
                DispatchPlan.builder(x, scales)
                        .topk(rank.topkIdx(), rank.weights(), shape.experts());
        DispatchResult result = rank.dispatch(plan);
        Tensor outputs = context.upload(HostTensors.withRowGap(rank.hostOutputs(), 40));
        rank.combine(CombinePlan.builder(outputs, result.handle()));
    }

    /**
     * The same plan object carries new content each time, and its result is the same object where
     * nothing in it changed.
     */
    @Cases(from = "few")
    public void planReuse(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context, 1);
        NormalRank later = shape.rank(context, 2);
        DispatchPlan plan = rank.plan().build();
        DispatchResult first = context.buffer().dispatch(plan);
        rank.verify(first);
        rank.load(later);
        DispatchResult second = context.buffer().dispatch(plan);
        later.verify(second);
        later.combine(second.handle());
        assertThat(second.handle()).isSameAs(first.handle());
    }
}
