package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireIllegal;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.Tokens;
import java.util.List;

/** Normal-mode combine in all its forms. */
@BackendSuite
public record NormalCombineConformance(TestBackend backend) {
    /** Smaller than the rows of any shape here. */
    private static final int NARROW = 128;

    @Cases(from = "all")
    public void biases(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchHandle handle = rank.newHandle();
        Tensor first = rank.world().bias(context.rank(), 0);
        Tensor second = rank.world().bias(context.rank(), 1);
        Tensor one = context.upload(first);
        Tensor two = context.upload(HostTensors.withRowGap(second, 3));
        rank.combine(rank.home(handle).bias(one), first);
        rank.combine(rank.home(handle).bias(one, two), first, second);
        rank.combine(rank.home(handle).bias(one, two).out(two), first, second);
    }

    @Cases(from = "all")
    public void combinedWeights(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        rank.combineWithWeights(rank.newHandle(), CombineFormat.BF16);
        NormalRank expanded = rank.expecting(rank.check().expanded(4));
        DispatchHandle handle = expanded.newHandle();
        CombinePlan.Builder wrong =
                expanded.home(handle)
                        .topkWeights(
                                context.poisoned(DType.F32, expanded.hostOutputs().size(0) + 1));
        requireIllegal(() -> expanded.combine(wrong), "topkWeights is F32");
        expanded.combineWithWeights(handle, CombineFormat.BF16);
    }

    /** Rows that are summed into the combine region must not be read from there meanwhile. */
    @Cases(from = "few")
    public void expandedRowsInTheCombineRegion(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        Buffer buffer = context.buffer();
        Tensor region = buffer.getCombineBuffer(rank.newHandle());
        DispatchResult expanded = buffer.dispatch(rank.plan().expanded(true).build());
        Tensor x = HostTensors.view(region, expanded.recvX().shape(), new long[] {0, 1});
        CombinePlan plan = CombinePlan.builder(x, expanded.handle()).build();
        requireIllegal(() -> buffer.combine(plan), "combine region");
        rank.roundTrip();
    }

    /** What was received with a token comes back as it was sent. */
    @Cases(from = "few")
    public void receivedWeightsComeHome(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        DispatchResult result = rank.dispatch();
        CombinePlan plan = rank.home(result.handle()).topkWeights(result.recvTopkWeights()).build();
        CombineResult combined = context.buffer().combine(plan);
        rank.verify(combined);
        Tensor home = context.download(combined.topkWeights());
        Tensor sent = context.download(rank.weights());
        assertThat(HostTensors.firstDifference(sent, home)).isEqualTo(-1);
    }

    @Cases(from = "few")
    public void outTensor(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchHandle handle = rank.newHandle();
        int tokens = rank.world().routing().numTokens(context.rank());
        Tensor out = context.poisoned(DType.BF16, tokens, shape.hidden());
        CombineResult combined = context.buffer().combine(rank.home(handle).out(out).build());
        rank.verify(combined);
        assertThat(combined.x().address()).isEqualTo(out.address());
        Tensor strided = context.poisonedWithRowGap(8, DType.BF16, tokens, shape.hidden());
        rank.combine(rank.home(handle).out(strided));
    }

    /**
     * Tokens may be packed for their way out; what the experts make of them comes home as it is.
     */
    @Cases(from = "few")
    public void rowsOfAnotherSize(NormalShape shape, RankContext context) {
        NormalRank wide = shape.rank(context);
        NormalRank narrow = new NormalRank(context, context.shared("packed", _ -> packed(shape)));
        DispatchHandle handle = narrow.newHandle();
        Tensor bias = wide.world().bias(context.rank(), 0);
        wide.combine(wide.home(handle).bias(context.upload(bias)), bias);
        wide.combineWithWeights(handle, CombineFormat.BF16);
        if (shape.hasWholeGroups()) {
            wide.combineFp8(handle);
        }
        narrow.combine(wide.newHandle());
        int numRows = (int) wide.hostOutputs().size(0);
        for (int hidden : new int[] {shape.hidden() + 8, NARROW + 4}) {
            Tensor x = context.poisoned(DType.BF16, numRows, hidden);
            CombinePlan plan = CombinePlan.builder(x, handle).build();
            requireIllegal(() -> context.buffer().combine(plan), "hidden=" + hidden);
        }
        Tensor out = context.poisoned(DType.BF16, handle.numTokens(), NARROW);
        requireIllegal(() -> wide.combine(wide.home(handle).out(out)), "out is BF16");
        wide.combine(handle);
    }

    /** Rows of any bytes. */
    private static NormalWorld packed(NormalShape shape) {
        NormalWorld world = NormalWorld.of(shape.spec(), NARROW, shape.dtype());
        world.scramble();
        return world;
    }

    /** What is computed into the buffer's own memory is combined from there. */
    @Cases(from = "few")
    public void combineBuffer(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchHandle handle = rank.newHandle();
        for (int round = 0; round < 2; round++) {
            Tensor x = rank.filledCombineBuffer(handle);
            assertThat(x.shape()).isEqualTo(rank.hostOutputs().shape());
            rank.combine(CombinePlan.builder(x, handle));
        }
    }

    /** An engine whose experts do nothing may hand back the received view itself. */
    @Cases(from = "fewBf16")
    public void combineOfTheReceivedView(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        List<Tensor> received =
                context.shared(
                        "received", _ -> rank.world().received().stream().map(Tokens::x).toList());
        for (DispatchPlan.Receive how : DispatchPlan.Receive.values()) {
            DispatchResult result = rank.dispatch(rank.plan().receive(how));
            CombinePlan plan = CombinePlan.builder(result.recvX(), result.handle()).build();
            rank.verify(context.buffer().combine(plan), CombineFormat.BF16, received);
            rank.verify(context.buffer().combine(plan), CombineFormat.BF16, received);
        }
    }

    /**
     * A view that a later dispatch has overwritten is refused. A dispatch that was refused itself
     * has overwritten nothing.
     */
    @Cases(from = "fewBf16")
    public void combineOfAnOverwrittenView(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        Buffer buffer = context.buffer();
        DispatchResult first = rank.dispatch();
        CombinePlan overwritten = CombinePlan.builder(first.recvX(), first.handle()).build();
        DispatchResult second = rank.dispatch();
        requireIllegal(() -> buffer.combine(overwritten), "overwritten");
        Tensor wrong = context.download(rank.topkIdx());
        int culprit = context.topology().numRanks() - 1;
        if (context.rank() == culprit) {
            wrong.setLong(shape.experts(), 0, 0);
        }
        DispatchPlan.Builder refused =
                rank.bare().topk(context.upload(wrong), null, shape.experts());
        Misbehaviour.requireRouting(culprit, () -> buffer.dispatch(refused.build()), "topkIdx");
        buffer.combine(CombinePlan.builder(second.recvX(), second.handle()).build());
        rank.combine(first.handle());
    }

    /** One plan combines again and again, each time what its tensors hold then. */
    @Cases(from = "few")
    public void combinePlanReuse(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        Tensor x = context.poisoned(DType.BF16, rank.hostOutputs().shape());
        CombinePlan plan = CombinePlan.builder(x, rank.newHandle()).build();
        rank.call(plan);
        context.backend().write(rank.hostOutputs(), x);
        Tensor once = rank.verify(context.buffer().combine(plan));
        Tensor twice = rank.verify(context.buffer().combine(plan));
        assertThat(HostTensors.firstDifference(once, twice)).isEqualTo(-1);
    }
}
