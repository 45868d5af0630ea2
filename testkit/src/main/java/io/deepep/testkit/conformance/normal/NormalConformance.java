package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireIllegal;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import org.junit.jupiter.api.Tag;

/**
 * Normal mode against the oracle: dispatch bit for bit, combine within the rounding that its
 * arithmetic admits.
 */
@BackendSuite
public record NormalConformance(TestBackend backend) implements RankGroup {
    private static final NormalLimits LIMITS = NormalLimits.of(24, 384, 8, 32);
    private static final NormalShape TWICE = new NormalShape(2, 2, 24, 136, DType.BF16, 4, 16);
    private static final int SOAK_ITERATIONS = 200;
    private static final Config TINY = new Config(2, 1, 2);

    @Override
    public void limit(Buffer.Builder builder) {
        builder.normal(LIMITS);
    }

    /** Each call starts after the one before it, and nobody waits on the way. */
    @Cases(from = "few")
    public void asynchronousChain(NormalShape shape, RankContext context) {
        chain(shape.rank(context), CombineFormat.BF16);
    }

    static void chain(NormalRank rank, CombineFormat format) {
        NormalDispatchCheck check = rank.check();
        Buffer buffer = rank.context().buffer();
        Tensor outputs = rank.outputs();
        CallOptions options = CallOptions.async();
        for (int round = 0; round < 3; round++) {
            DispatchResult result = buffer.dispatch(rank.plan().build(), options);
            CombinePlan plan = CombinePlan.builder(outputs, result.handle()).format(format).build();
            CombineResult combined = buffer.combine(plan, options.after(result.event()));
            rank.verify(combined, format, rank.world().outputs(check));
            assertThat(combined.event().isDone()).isTrue();
            options = CallOptions.async().after(combined.event());
        }
        rank.verify(buffer.dispatch(rank.plan().build(), CallOptions.async()));
    }

    /** Two micro-batches in flight: both are dispatched before either is combined. */
    @Cases(from = "few")
    public void twoMicroBatches(NormalShape shape, RankContext context) {
        NormalRank rankA = shape.rank(context, 11);
        NormalRank rankB = shape.rank(context, 12);
        DispatchPlan planA = rankA.plan().receive(DispatchPlan.Receive.COPY).build();
        DispatchPlan planB = rankB.plan().receive(DispatchPlan.Receive.COPY).build();
        Tensor outputsA = rankA.outputs();
        Tensor outputsB = rankB.outputs();
        Buffer buffer = context.buffer();
        for (int round = 0; round < 3; round++) {
            DispatchResult resultA = buffer.dispatch(planA, CallOptions.async());
            DispatchResult resultB = buffer.dispatch(planB, CallOptions.async());
            CombineResult homeA =
                    buffer.combine(
                            CombinePlan.builder(outputsA, resultA.handle()).build(),
                            CallOptions.async());
            rankB.verify(resultB);
            CombineResult homeB =
                    buffer.combine(
                            CombinePlan.builder(outputsB, resultB.handle()).build(),
                            CallOptions.async());
            rankA.verify(resultA);
            rankA.verify(homeA);
            rankB.verify(homeB);
        }
    }

    /** Many small exchanges of random shapes, one after the other over one buffer. */
    @Tag("manyCalls")
    @Cases({"1, 4", "2, 2"})
    public void soak(RankContext context) {
        int numRanks = context.topology().numRanks();
        for (int i = 0; i < SOAK_ITERATIONS; i++) {
            NormalWorld world =
                    context.shared(i, n -> NormalSoak.Worlds.of(LIMITS, numRanks, n).world());
            NormalRank rank = new NormalRank(context, world);
            (i % 3 == 2 ? rank.expecting(rank.check().expanded(4)) : rank).roundTrip();
        }
    }

    /** Two runs with new buffers give the same bits. */
    @Cases(from = "few")
    public void sameBitsOnEveryRun(NormalShape shape) {
        shape.requireSameBits(backend(), shape.world());
    }

    /**
     * A call may use other chunk sizes than its buffer; one slot per queue makes every queue run
     * full.
     */
    @Cases(from = "all")
    public void configOverride(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        DispatchResult result = rank.dispatch(rank.plan().config(TINY));
        rank.combine(rank.home(result.handle()).config(TINY));
        DispatchResult few = rank.dispatch(rank.plan().numSms(2));
        rank.combine(rank.home(few.handle()).numSms(2));
        rank.roundTrip();
    }

    @Cases(from = "all")
    public void tinyQueues(NormalShape shape) {
        shape.run(
                backend(),
                builder -> builder.dispatchConfig(TINY).combineConfig(TINY),
                context -> {
                    NormalRank rank = shape.rank(context);
                    rank.roundTrip();
                    rank.roundTrip();
                });
    }

    /** Buffers of exactly the hinted sizes suffice, and one byte less is refused. */
    @Cases(from = "all")
    public void exactSizeHints(NormalShape shape) {
        Config config = new Config(4, 2, 16);
        requireHintsSuffice(shape, config, config);
    }

    /** The larger of the hints of two configurations is enough for both. */
    @Cases(from = "few")
    public void largerOfTwoSizeHints(NormalShape shape) {
        requireHintsSuffice(shape, new Config(4, 2, 16), new Config(8, 3, 6));
    }

    private void requireHintsSuffice(NormalShape shape, Config dispatch, Config combine) {
        NormalWorld world = shape.world();
        EpTopology topology = shape.topology();
        NormalLimits limits = world.limits();
        Config both = dispatch.covering(combine);
        long nvl = both.nvlBufferSizeHint(limits, topology);
        long rdma = both.rdmaBufferSizeHint(limits, topology);
        assertThat(rdma > 0)
                .as("RDMA memory is needed between nodes only")
                .isEqualTo(topology.isInternode());
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    Buffer.Builder builder =
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(limits)
                                    .dispatchConfig(dispatch)
                                    .combineConfig(combine)
                                    .numRdmaBytes(rdma);
                    requireIllegal(builder.numNvlBytes(nvl - 1)::open, "numNvlBytes=" + (nvl - 1));
                    try (Buffer buffer = builder.numNvlBytes(nvl).open()) {
                        assertThat(buffer.options().numNvlBytes()).isEqualTo(nvl);
                        NormalRank rank =
                                new NormalRank(
                                        new RankContext(backend(), communicator, buffer), world);
                        rank.roundTrip();
                        assertThat(
                                        buffer.getLocalBufferTensor(DType.BF16, nvl / 2, 0, false)
                                                .numElements())
                                .isEqualTo(nvl / 2);
                    }
                });
    }

    /** A receiver with room for exactly what arrives has enough. */
    @Cases(from = "few")
    public void exactRecvCapacity(NormalShape shape) {
        NormalWorld world = shape.world();
        Ranks.run(
                backend(),
                shape.topology(),
                builder -> builder.normal(world.limits(world.mostRows())),
                context -> new NormalRank(context, world).roundTrip());
    }

    /** Two buffers of one group do not disturb each other. */
    @Cases("2, 2")
    public void twoBuffers(RankContext context) {
        try (Buffer other = context.builder(this).open()) {
            NormalRank rankA = TWICE.rank(context, 21);
            NormalRank rankB = TWICE.rank(context.with(other), 22);
            DispatchResult viewA = rankA.dispatch();
            rankB.roundTrip();
            rankA.verify(viewA);
            rankA.combine(viewA.handle());
        }
    }
}
