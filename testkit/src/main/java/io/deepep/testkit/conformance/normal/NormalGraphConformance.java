package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static io.deepep.testkit.conformance.Misbehaviour.requireUnrecordable;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.ScaledRows;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.NormalWorld;
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

    /** How rows are given to a combine, and travel. */
    private enum Home {
        BF16(CombineFormat.BF16),
        CAST(CombineFormat.FP8),
        FP8(CombineFormat.FP8),
        FP8_IN_PLACE(CombineFormat.FP8);

        final CombineFormat format;

        Home(CombineFormat format) {
            this.format = format;
        }
    }

    /** Where calls are recorded. */
    private enum Place {
        /** On the buffer's stream, each call with an event of its own. */
        BUFFER,
        /** The same without: nothing lies between the launches, so they overlap. */
        BUFFER_IN_ORDER,
        /** On a stream of the engine. */
        ENGINE
    }

    /** A dispatch and a combine of one rank over the same memory, whatever exchange it holds. */
    private static final class Pair {
        final RankContext context;
        final UnaryOperator<NormalDispatchCheck> form;
        final Home home;
        final CallOptions options;
        final NormalRank rank;
        final Tensor outputs;
        final Tensor scales;
        final DispatchPlan plan;
        final CombinePlan back;
        final DispatchResult received;
        final CombineResult combined;
        NormalRank expected;

        /** With the largest number of rows that can come. */
        Pair(RankContext context, NormalShape shape, NormalWorld first, CallOptions options) {
            this(
                    context,
                    first,
                    plan -> plan.numWorstTokens(worstRows(shape)),
                    check -> check.worstCase(worstRows(shape)),
                    Home.BF16,
                    options);
        }

        /** Makes both calls once. */
        Pair(
                RankContext context,
                NormalWorld first,
                UnaryOperator<DispatchPlan.Builder> dispatch,
                UnaryOperator<NormalDispatchCheck> form,
                Home home,
                CallOptions options) {
            this.context = context;
            this.form = form;
            this.home = home;
            this.options = options;
            this.rank = rankOf(first);
            this.expected = rank;
            this.plan = dispatch.apply(rank.plan()).build();
            this.received = context.buffer().dispatch(plan, options);
            ScaledRows rows =
                    switch (home) {
                        case BF16, CAST -> null;
                        case FP8 -> rank.upload(rank.fp8Outputs());
                        case FP8_IN_PLACE -> rank.inBuffer(rank.fp8Outputs(), received.handle());
                    };
            this.outputs = rows == null ? rank.outputs() : rows.elements();
            this.scales = rows == null ? null : rows.scales();
            this.back =
                    CombinePlan.builder(outputs, received.handle())
                            .scales(scales)
                            .format(home.format)
                            .build();
            this.combined = context.buffer().combine(back, options);
            verify();
        }

        /** The results are those of the first time. */
        void enqueue() {
            context.buffer().dispatch(plan, options);
            context.buffer().combine(back, options);
        }

        private NormalRank rankOf(NormalWorld world) {
            return new NormalRank(context, world).expecting(form.apply(world.check()));
        }

        /** Writes another exchange over this one. */
        void load(NormalWorld world) {
            expected = rankOf(world);
            rank.load(expected);
            if (scales == null) {
                context.copy(expected.outputs(), outputs);
            } else {
                rank.write(expected.fp8Outputs(), new ScaledRows(outputs, scales));
            }
        }

        void loadBadExpert() {
            Tensor idx = context.download(rank.topkIdx());
            idx.setLong(rank.world().routing().numExperts(), 3, 1);
            context.backend().write(idx, rank.topkIdx());
        }

        void verify() {
            expected.verify(received);
            expected.verify(combined, home.format, expected.world().outputs(expected.check()));
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
            Home home,
            Place place) {
        List<NormalWorld> worlds = context.shared("worlds", _ -> worlds(shape));
        Stream stream =
                place == Place.ENGINE
                        ? backend.newStream(context.device()).stream()
                        : context.buffer().communicationStream();
        context.meet();
        CallOptions options =
                place == Place.BUFFER ? CallOptions.async() : CallOptions.sync().on(stream);
        Pair pair = new Pair(context, worlds.getFirst(), form, check, home, options);
        try (Recording recording =
                backend.record(
                        stream,
                        () -> {
                            pair.enqueue();
                            pair.enqueue();
                        })) {
            context.meet();
            for (int i = 1; i <= NUM_REPLAYS; i++) {
                pair.load(worlds.get(i % NUM_WORLDS));
                recording.replay();
                pair.verify();
            }
            // A call waits for the replay that is under way.
            pair.load(worlds.getLast());
            recording.replay();
            pair.enqueue();
            pair.verify();
        }
        // What is not recorded goes on as before.
        new NormalRank(context, worlds.getLast()).roundTrip();
        pair.load(worlds.getFirst());
        pair.enqueue();
        pair.verify();
    }

    /** With the largest number of rows that can come. */
    private void replay(NormalShape shape, RankContext context, Home home, Place place) {
        int rows = worstRows(shape);
        replay(shape, context, r -> r.numWorstTokens(rows), c -> c.worstCase(rows), home, place);
    }

    /** The first that the backend has groups for. */
    private NormalShape firstShape() {
        return NormalShape.few(backend).findFirst().orElseThrow();
    }

    private static int worstRows(NormalShape shape) {
        return shape.tokens() * shape.topology().numRanks();
    }

    @Few
    public void views(NormalShape shape, RankContext context) {
        replay(shape, context, Home.BF16, Place.BUFFER);
    }

    @Few
    public void inOrder(NormalShape shape, RankContext context) {
        replay(shape, context, Home.BF16, Place.BUFFER_IN_ORDER);
    }

    @FewForFp8
    public void fp8HomeInOrder(NormalShape shape, RankContext context) {
        replay(shape, context, Home.CAST, Place.BUFFER_IN_ORDER);
    }

    @Few
    public void copiesOnAnEnginesStream(NormalShape shape, RankContext context) {
        int rows = worstRows(shape);
        replay(
                shape,
                context,
                r -> r.receive(DispatchPlan.Receive.COPY).numWorstTokens(rows),
                c -> c.worstCase(rows),
                Home.BF16,
                Place.ENGINE);
    }

    /** What is cast on the way home is cast again by each replay. */
    @FewForFp8
    public void fp8Home(NormalShape shape, RankContext context) {
        replay(shape, context, Home.CAST, Place.ENGINE);
    }

    /** What is FP8 already is copied into the buffer by each replay. */
    @FewForFp8
    public void fp8Rows(NormalShape shape, RankContext context) {
        replay(shape, context, Home.FP8, Place.ENGINE);
    }

    /** What is FP8 already and lies in the buffer is read there by each replay. */
    @FewForFp8
    public void fp8RowsInPlace(NormalShape shape, RankContext context) {
        replay(shape, context, Home.FP8_IN_PLACE, Place.ENGINE);
    }

    @Few
    public void expanded(NormalShape shape, RankContext context) {
        int rows = 2 * worstRows(shape) * shape.topk();
        replay(
                shape,
                context,
                r -> r.expanded(true).expertAlignment(4).numWorstTokens(rows),
                c -> c.expanded(4).worstCase(rows),
                Home.BF16,
                Place.BUFFER);
    }

    static List<EpTopology> maskableGroups(TestBackend backend) {
        return List.of(Ranks.topology(1, 4), Ranks.topology(2, 2)).stream()
                .filter(group -> Ranks.fit(backend, group))
                .toList();
    }

    /** Replays go on without a rank that is masked between them, and with it once all have met. */
    @Cases
    @MethodSource("maskableGroups")
    public void maskedBetweenReplays(EpTopology topology) {
        NormalShape shape = NormalShape.small(topology);
        int absent = 2;
        NormalWorld whole = shape.world();
        NormalWorld rest = whole.without(absent);
        shape.run(
                backend,
                builder -> builder.network(backend.networkWithMasks()),
                context -> {
                    Pair pair = new Pair(context, shape, whole, CallOptions.async());
                    Buffer buffer = context.buffer();
                    try (Recording recording =
                            backend.record(buffer.communicationStream(), pair::enqueue)) {
                        context.meet();
                        recording.replay();
                        pair.verify();
                        if (context.rank() != absent) {
                            buffer.updateMask(absent, true);
                            pair.load(rest);
                            recording.replay();
                            pair.verify();
                            recording.replay();
                            pair.verify();
                        }
                        buffer.rejoin();
                        pair.load(whole);
                        recording.replay();
                        pair.verify();
                    }
                });
    }

    /** A replay with a bad index fails on every rank, in both calls; the next one is good again. */
    @Test
    public void replayOfABadRouting(RankContext context) {
        replayOfABadRouting(context, CallOptions.async());
    }

    @Test
    public void replayOfABadRoutingInOrder(RankContext context) {
        Stream stream = context.buffer().communicationStream();
        replayOfABadRouting(context, CallOptions.sync().on(stream));
    }

    private void replayOfABadRouting(RankContext context, CallOptions options) {
        NormalShape shape = firstShape();
        List<NormalWorld> worlds = context.shared("worlds", _ -> worlds(shape));
        Pair pair = new Pair(context, shape, worlds.getFirst(), options);
        Stream stream = context.buffer().communicationStream();
        try (Recording recording = backend.record(stream, pair::enqueue)) {
            context.meet();
            String bad = "topkIdx[3][1]=" + shape.experts();
            for (int i = 0; i < 3; i++) {
                pair.load(worlds.get(i));
                if (context.isCulprit()) {
                    pair.loadBadExpert();
                }
                recording.replay();
                requireRouting(pair.received.event()::synchronize, bad);
                requireRouting(pair.received.event()::synchronize, bad);
                assertThatThrownBy(pair.combined.event()::synchronize)
                        .hasMessageContaining("the dispatch of the handle");
                pair.load(worlds.get(i + 1));
                recording.replay();
                pair.verify();
            }
            // A failure that nobody asks about is kept for whoever asks later.
            context.meet();
            Tensor good = context.download(pair.rank.topkIdx());
            if (context.isCulprit()) {
                pair.loadBadExpert();
            }
            recording.replay();
            stream.synchronize();
            context.backend().write(good, pair.rank.topkIdx());
            recording.replay();
            stream.synchronize();
            requireRouting(pair.received.event()::synchronize, bad);
        }
    }

    /** Nothing is asked of the GPU for observers while calls are recorded. */
    @Few
    public void observed(NormalShape shape) {
        shape.run(
                backend,
                builder -> builder.observer(_ -> {}),
                context -> {
                    Pair pair = new Pair(context, shape, shape.world(), CallOptions.async());
                    pair.enqueue(); // nobody asks for its end
                    Stream stream = context.buffer().communicationStream();
                    try (Recording recording = backend.record(stream, pair::enqueue)) {
                        context.meet();
                        recording.replay();
                        pair.verify();
                    }
                    pair.enqueue();
                    pair.verify();
                });
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
        rank.verify(buffer.dispatch(exact));
        rank.expecting(rank.check().worstCase(rows)).verify(buffer.dispatch(worst));
        CallOptions async = CallOptions.async();
        requireUnrecordable(context, "numWorstTokens", () -> buffer.dispatch(exact, async));
        requireUnrecordable(context, "without a compute stream", () -> buffer.dispatch(worst));
        requireUnrecordable(context, "once before", () -> buffer.dispatch(fresh, async));
        requireUnrecordable(
                context,
                "once before",
                () -> buffer.getDispatchLayout(rank.topkIdx(), shape.experts()));
        rank.roundTrip();
    }
}
