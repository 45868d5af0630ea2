package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Normal-mode calls recorded into a graph and replayed with other tokens and another routing in the
 * same memory, each replay compared with the oracle. For backends that can record.
 */
@BackendSuite(recording = true)
public record NormalGraphConformance(TestBackend backend) implements NormalSuite, RankGroup {
    private static final int NUM_WORLDS = 5;
    private static final int NUM_REPLAYS = 20;

    @Override
    public EpTopology topology(TestBackend given) {
        return firstShape().topology();
    }

    @Override
    public void limit(Buffer.Builder builder) {
        firstShape().limit(builder);
    }

    /** Exchanges of one shape, and the memory of one rank that takes turns to hold them. */
    private static final class Memory {
        final RankContext context;
        final UnaryOperator<NormalDispatchCheck> form;
        final NormalRank rank;
        final Tensor outputs;
        CombineFormat format = CombineFormat.BF16;
        NormalWorld current;

        Memory(RankContext context, NormalWorld first, UnaryOperator<NormalDispatchCheck> form) {
            this.context = context;
            this.form = form;
            this.current = first;
            this.rank = new NormalRank(context, current);
            this.outputs = rank.outputs(check());
        }

        NormalDispatchCheck check() {
            return form.apply(current.check());
        }

        /** Writes another exchange over this one. */
        void load(NormalWorld world) {
            current = world;
            NormalRank other = new NormalRank(context, world);
            overwrite(other.x(), rank.x());
            if (rank.scales() != null) {
                overwrite(other.scales(), rank.scales());
            }
            overwrite(other.topkIdx(), rank.topkIdx());
            overwrite(other.weights(), rank.weights());
            overwrite(other.outputs(check()), outputs);
        }

        void overwrite(Tensor from, Tensor to) {
            context.backend().write(context.download(from), to);
        }

        void verify(DispatchResult received, CombineResult home) {
            NormalRank expected = new NormalRank(context, current);
            expected.verify(received, check());
            if (format == CombineFormat.FP8) {
                expected.verifyFp8(home, check());
            } else {
                expected.verify(home, check());
            }
        }
    }

    private static List<NormalWorld> worlds(NormalShape shape) {
        return IntStream.range(0, NUM_WORLDS).mapToObj(shape::world).toList();
    }

    private void replay(
            NormalShape shape,
            RankContext context,
            UnaryOperator<DispatchPlan.Builder> form,
            UnaryOperator<NormalDispatchCheck> check,
            CombineFormat format,
            boolean onEngineStream) {
        List<NormalWorld> worlds = context.shared("worlds", _ -> worlds(shape));
        Memory memory = new Memory(context, worlds.getFirst(), check);
        memory.format = format;
        Buffer buffer = context.buffer();
        Stream stream =
                onEngineStream
                        ? backend.newStream(context.device()).stream()
                        : buffer.communicationStream();
        context.meet();
        CallOptions options = onEngineStream ? CallOptions.sync().on(stream) : CallOptions.async();
        DispatchPlan plan = form.apply(memory.rank.plan()).build();
        DispatchResult received = buffer.dispatch(plan, options);
        CombinePlan back =
                CombinePlan.builder(memory.outputs, received.handle()).format(format).build();
        CombineResult home = buffer.combine(back, options);
        memory.verify(received, home);
        try (Recording recording =
                backend.record(
                        stream,
                        () -> {
                            buffer.dispatch(plan, options);
                            buffer.combine(back, options);
                        })) {
            context.meet();
            for (int i = 1; i <= NUM_REPLAYS; i++) {
                memory.load(worlds.get(i % NUM_WORLDS));
                recording.replay();
                memory.verify(received, home);
            }
        }
        // What is not recorded goes on as before.
        new NormalRank(context, worlds.getLast()).roundTrip();
        memory.load(worlds.getFirst());
        buffer.dispatch(plan, options);
        buffer.combine(back, options);
        memory.verify(received, home);
    }

    /** The first that the backend has groups for. */
    private NormalShape firstShape() {
        return NormalShape.few(backend).findFirst().orElseThrow();
    }

    private static int worstRows(NormalShape shape) {
        return shape.tokens() * shape.topology().numRanks();
    }

    @Cases
    @MethodSource(FEW)
    public void views(NormalShape shape, RankContext context) {
        int rows = worstRows(shape);
        replay(
                shape,
                context,
                r -> r.numWorstTokens(rows),
                c -> c.worstCase(rows),
                CombineFormat.BF16,
                false);
    }

    @Cases
    @MethodSource(FEW)
    public void copiesOnAnEnginesStream(NormalShape shape, RankContext context) {
        int rows = worstRows(shape);
        replay(
                shape,
                context,
                r -> r.receive(DispatchPlan.Receive.COPY).numWorstTokens(rows),
                c -> c.worstCase(rows),
                CombineFormat.BF16,
                true);
    }

    /** What is cast on the way home is cast again by each replay. */
    @Cases
    @MethodSource("io.deepep.testkit.conformance.normal.NormalFp8CombineConformance#fewShapes")
    public void fp8Home(NormalShape shape, RankContext context) {
        int rows = worstRows(shape);
        replay(
                shape,
                context,
                r -> r.numWorstTokens(rows),
                c -> c.worstCase(rows),
                CombineFormat.FP8,
                true);
    }

    @Cases
    @MethodSource(FEW)
    public void expanded(NormalShape shape, RankContext context) {
        int rows = 2 * worstRows(shape) * shape.topk();
        replay(
                shape,
                context,
                r -> r.expanded(true).expertAlignment(4).numWorstTokens(rows),
                c -> c.expanded(4).worstCase(rows),
                CombineFormat.BF16,
                false);
    }

    static List<EpTopology> maskableGroups(TestBackend backend) {
        return List.of(Ranks.topology(1, 4), Ranks.topology(2, 2)).stream()
                .filter(group -> Ranks.fit(backend, group))
                .filter(group -> !group.isInternode() || backend.masksAcrossNodes())
                .toList();
    }

    /** Replays go on without a rank that is masked between them, and with it once all have met. */
    @Cases
    @MethodSource("maskableGroups")
    public void maskedBetweenReplays(EpTopology topology) {
        NormalShape shape =
                new NormalShape(
                        topology.numRdmaRanks(),
                        topology.numNvlRanks(),
                        20,
                        256,
                        DType.BF16,
                        4,
                        16);
        int absent = 2;
        int rows = worstRows(shape);
        NormalWorld whole = shape.world();
        NormalWorld rest = whole.without(absent);
        Ranks.run(
                backend,
                shape.topology(),
                builder -> builder.normal(whole.limits()),
                context -> {
                    Memory memory = new Memory(context, whole, c -> c.worstCase(rows));
                    Buffer buffer = context.buffer();
                    CallOptions options = CallOptions.async();
                    DispatchPlan plan = memory.rank.plan().numWorstTokens(rows).build();
                    DispatchResult received = buffer.dispatch(plan, options);
                    CombinePlan back =
                            CombinePlan.builder(memory.outputs, received.handle()).build();
                    CombineResult home = buffer.combine(back, options);
                    memory.verify(received, home);
                    try (Recording recording =
                            backend.record(
                                    buffer.communicationStream(),
                                    () -> {
                                        buffer.dispatch(plan, options);
                                        buffer.combine(back, options);
                                    })) {
                        context.communicator().barrier(Ranks.TIMEOUT);
                        recording.replay();
                        memory.verify(received, home);
                        if (context.rank() != absent) {
                            buffer.updateMask(absent, true);
                            memory.load(rest);
                            recording.replay();
                            memory.verify(received, home);
                            recording.replay();
                            memory.verify(received, home);
                        }
                        buffer.rejoin();
                        memory.load(whole);
                        recording.replay();
                        memory.verify(received, home);
                    }
                });
    }

    /** A replay with a bad index fails on every rank, in both calls; the next one is good again. */
    @Test
    public void replayOfABadRouting(RankContext context) {
        NormalShape shape = firstShape();
        List<NormalWorld> worlds = context.shared("worlds", _ -> worlds(shape));
        int rows = worstRows(shape);
        Memory memory = new Memory(context, worlds.getFirst(), c -> c.worstCase(rows));
        Buffer buffer = context.buffer();
        DispatchPlan plan = memory.rank.plan().numWorstTokens(rows).build();
        DispatchResult received = buffer.dispatch(plan, CallOptions.async());
        CombinePlan back = CombinePlan.builder(memory.outputs, received.handle()).build();
        CombineResult home = buffer.combine(back, CallOptions.async());
        memory.verify(received, home);
        try (Recording recording =
                backend.record(
                        buffer.communicationStream(),
                        () -> {
                            buffer.dispatch(plan, CallOptions.async());
                            buffer.combine(back, CallOptions.async());
                        })) {
            context.meet();
            for (int i = 0; i < 3; i++) {
                memory.load(worlds.get(i));
                if (context.isCulprit()) {
                    Tensor idx = context.download(memory.rank.topkIdx());
                    idx.setLong(shape.experts(), 3, 1);
                    context.backend().write(idx, memory.rank.topkIdx());
                }
                recording.replay();
                String bad = "topkIdx[3][1]=" + shape.experts();
                requireRouting(received.event()::synchronize, bad);
                requireRouting(received.event()::synchronize, bad);
                assertThatThrownBy(home.event()::synchronize)
                        .hasMessageContaining("the dispatch of the handle");
                memory.load(worlds.get(i + 1));
                recording.replay();
                memory.verify(received, home);
            }
            // A failure that nobody asks about is kept for whoever asks later.
            context.meet();
            replayBadThenGood(memory, recording, shape);
            requireRouting(received.event()::synchronize, "topkIdx[3][1]=" + shape.experts());
        }
    }

    private static void replayBadThenGood(Memory memory, Recording recording, NormalShape shape) {
        RankContext context = memory.context;
        Tensor good = context.download(memory.rank.topkIdx());
        if (context.isCulprit()) {
            Tensor bad = context.download(memory.rank.topkIdx());
            bad.setLong(shape.experts(), 3, 1);
            context.backend().write(bad, memory.rank.topkIdx());
        }
        recording.replay();
        context.buffer().communicationStream().synchronize();
        context.backend().write(good, memory.rank.topkIdx());
        recording.replay();
        context.buffer().communicationStream().synchronize();
    }

    /** What waits on the CPU cannot be recorded, says so, and leaves the buffer usable. */
    @Test
    public void refusals(RankContext context) {
        NormalShape shape = firstShape();
        int rows = worstRows(shape);
        NormalRank rank = shape.rank(context);
        Buffer buffer = context.buffer();
        DispatchPlan exact = rank.plan().build();
        DispatchPlan worst = rank.plan().numWorstTokens(rows).build();
        DispatchPlan fresh = rank.plan().numWorstTokens(rows).build();
        rank.verify(buffer.dispatch(exact), rank.world().check());
        rank.verify(buffer.dispatch(worst), rank.world().check().worstCase(rows));
        refuse(context, "numWorstTokens", () -> buffer.dispatch(exact, CallOptions.async()));
        refuse(context, "without a compute stream", () -> buffer.dispatch(worst));
        refuse(context, "once before", () -> buffer.dispatch(fresh, CallOptions.async()));
        refuse(
                context,
                "once before",
                () -> buffer.getDispatchLayout(rank.topkIdx(), shape.experts()));
        rank.roundTrip();
    }

    private void refuse(RankContext context, String mention, Runnable call) {
        assertThatThrownBy(() -> backend.record(context.buffer().communicationStream(), call))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining(mention);
    }
}
