package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static io.deepep.testkit.conformance.Misbehaviour.requireUncapturable;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.Graph;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalPair.Home;
import io.deepep.testkit.exchange.NormalWorld;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Normal-mode calls captured into a graph and replayed with other tokens and another routing in the
 * same memory, each replay compared with the oracle. For backends that have graphs.
 */
@BackendSuite(graphs = true)
public record NormalGraphConformance(TestBackend backend) implements RankGroup {
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

    /** Where calls are captured. */
    private enum Place {
        /** On the buffer's stream, each call with an event of its own. */
        BUFFER,
        /** The same without: nothing lies between the launches, so they overlap. */
        BUFFER_IN_ORDER,
        /** On a stream of the engine. */
        ENGINE
    }

    private static List<NormalWorld> worlds(NormalShape shape, RankContext context) {
        return context.shared(
                "worlds", _ -> IntStream.range(0, NUM_WORLDS).mapToObj(shape::world).toList());
    }

    /** The rank's share of the first exchange, with the largest number of rows that can come. */
    private static NormalRank worstCase(NormalShape shape, RankContext context) {
        NormalRank exact = new NormalRank(context, worlds(shape, context).getFirst());
        return exact.expecting(exact.check().worstCase(worstRows(shape)));
    }

    private void replay(NormalShape shape, RankContext context, Home home, Place place) {
        NormalRank memory = worstCase(shape, context);
        replay(shape, memory, memory.plan(), home, place);
    }

    private void replay(
            NormalShape shape,
            NormalRank memory,
            DispatchPlan.Builder plan,
            Home home,
            Place place) {
        boolean ofEngine = place == Place.ENGINE;
        RankContext context = memory.context();
        try (TestStream engine = ofEngine ? backend.newStream(context.device()) : null) {
            Stream stream = ofEngine ? engine.stream() : context.buffer().communicationStream();
            CallOptions options =
                    place == Place.BUFFER ? CallOptions.async() : CallOptions.sync().on(stream);
            context.meet();
            NormalPair pair = new NormalPair(memory, plan, home, options);
            replay(pair, context, worlds(shape, context), stream);
        }
    }

    private static void replay(
            NormalPair pair, RankContext context, List<NormalWorld> worlds, Stream stream) {
        pair.prepare();
        try (Graph graph =
                Graph.capture(
                        stream,
                        () -> {
                            pair.enqueue();
                            pair.enqueue();
                        })) {
            context.meet();
            pair.replay(graph, worlds, NUM_REPLAYS);
            // A call waits for the replay that is under way.
            pair.load(worlds.getLast());
            graph.replay();
            pair.enqueue();
            pair.verify();
        }
        // What is not captured goes on as before.
        new NormalRank(context, worlds.getLast()).roundTrip();
        pair.load(worlds.getFirst());
        pair.prepare();
    }

    /** A prepared pair in the same form. */
    private static NormalPair prepared(
            RankContext context, NormalShape shape, NormalWorld first, CallOptions options) {
        NormalPair pair = NormalPair.worstCase(context, first, worstRows(shape), options);
        pair.prepare();
        return pair;
    }

    /** The first that the backend has groups for. */
    private NormalShape firstShape() {
        return NormalShape.few(backend).findFirst().orElseThrow();
    }

    private static int worstRows(NormalShape shape) {
        return shape.tokens() * shape.topology().numRanks();
    }

    @Cases(from = "few")
    public void views(NormalShape shape, RankContext context) {
        replay(shape, context, Home.BF16, Place.BUFFER);
    }

    @Cases(from = "few")
    public void inOrder(NormalShape shape, RankContext context) {
        replay(shape, context, Home.BF16, Place.BUFFER_IN_ORDER);
    }

    @Cases(from = "fewForFp8")
    public void fp8HomeInOrder(NormalShape shape, RankContext context) {
        replay(shape, context, Home.CAST, Place.BUFFER_IN_ORDER);
    }

    @Cases(from = "few")
    public void copiesOnAnEnginesStream(NormalShape shape, RankContext context) {
        NormalRank memory = worstCase(shape, context);
        DispatchPlan.Builder copies = memory.plan().receive(DispatchPlan.Receive.COPY);
        replay(shape, memory, copies, Home.BF16, Place.ENGINE);
    }

    /** What is cast on the way home is cast again by each replay. */
    @Cases(from = "fewForFp8")
    public void fp8Home(NormalShape shape, RankContext context) {
        replay(shape, context, Home.CAST, Place.ENGINE);
    }

    /** What is FP8 already is copied into the buffer by each replay. */
    @Cases(from = "fewForFp8")
    public void fp8Rows(NormalShape shape, RankContext context) {
        replay(shape, context, Home.FP8, Place.ENGINE);
    }

    /** What is FP8 already and lies in the buffer is read there by each replay. */
    @Cases(from = "fewForFp8")
    public void fp8RowsInPlace(NormalShape shape, RankContext context) {
        replay(shape, context, Home.FP8_IN_PLACE, Place.ENGINE);
    }

    @Cases(from = "few")
    public void expanded(NormalShape shape, RankContext context) {
        int rows = 2 * worstRows(shape) * shape.topk();
        NormalRank plain = worstCase(shape, context);
        NormalRank memory = plain.expecting(plain.check().expanded(4).worstCase(rows));
        replay(shape, memory, memory.plan(), Home.BF16, Place.BUFFER);
    }

    /**
     * A combine captured without its dispatch, which was called before: kernels that need not look
     * at masks left its handle to those of the graph, which do.
     */
    @Cases(from = "fewForFp8")
    public void afterADispatchOutsideTheGraph(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        Buffer buffer = context.buffer();
        DispatchHandle handle = rank.newHandle();
        List<Tensor> outputs = rank.world().outputs(rank.check());
        List<Tensor> weights = rank.world().weights(rank.check());
        for (CombineFormat format : List.of(CombineFormat.BF16, CombineFormat.FP8)) {
            Tensor x = context.poisoned(DType.BF16, outputs.get(context.rank()).shape());
            Tensor given = context.poisoned(DType.F32, weights.get(context.rank()).shape());
            CombinePlan plan =
                    CombinePlan.builder(x, handle).topkWeights(given).format(format).build();
            CombineResult combined = buffer.combine(plan, CallOptions.async());
            combined.event().synchronize();
            context.backend().write(outputs.get(context.rank()), x);
            context.backend().write(weights.get(context.rank()), given);
            context.meet();
            try (Graph graph =
                    Graph.capture(
                            buffer.communicationStream(),
                            () -> buffer.combine(plan, CallOptions.async()))) {
                context.meet();
                graph.replay();
                rank.verify(combined, format, outputs);
                rank.verifyWeights(combined, weights);
            }
        }
    }

    static List<EpTopology> maskableGroups(TestBackend backend) {
        return List.of(Ranks.topology(1, 4), Ranks.topology(2, 2)).stream()
                .filter(group -> Ranks.fit(backend, group))
                .toList();
    }

    /** Replays go on without a rank that is masked between them, and with it once all have met. */
    @Cases(from = "maskableGroups")
    public void maskedBetweenReplays(EpTopology topology) {
        NormalShape shape = NormalShape.small(topology);
        int absent = 2;
        NormalWorld whole = shape.world();
        NormalWorld rest = whole.without(absent);
        shape.run(
                backend,
                builder -> builder.network(backend.networkWithMasks()),
                context -> {
                    NormalPair pair = prepared(context, shape, whole, CallOptions.async());
                    Buffer buffer = context.buffer();
                    try (Graph graph = pair.capture(context, buffer.communicationStream())) {
                        graph.replay();
                        pair.verify();
                        if (context.rank() != absent) {
                            buffer.updateMask(absent, true);
                            pair.replay(graph, List.of(rest), 2);
                        }
                        buffer.rejoin();
                        pair.replay(graph, whole);
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
        List<NormalWorld> worlds = worlds(shape, context);
        NormalPair pair = prepared(context, shape, worlds.getFirst(), options);
        Stream stream = context.buffer().communicationStream();
        try (Graph graph = pair.capture(context, stream)) {
            String bad = "topkIdx[3][1]=" + shape.experts();
            for (int i = 0; i < 3; i++) {
                pair.load(worlds.get(i));
                pair.memory().loadBadExpert();
                graph.replay();
                requireRouting(pair.received().event()::synchronize, bad);
                requireRouting(pair.received().event()::synchronize, bad);
                assertThatThrownBy(pair.combined().event()::synchronize)
                        .hasMessageContaining("the dispatch of the handle");
                pair.replay(graph, worlds.get(i + 1));
            }
            // A failure that nobody asks about is kept for whoever asks later.
            context.meet();
            Tensor good = context.download(pair.memory().topkIdx());
            pair.memory().loadBadExpert();
            graph.replay();
            stream.synchronize();
            context.backend().write(good, pair.memory().topkIdx());
            graph.replay();
            stream.synchronize();
            requireRouting(pair.received().event()::synchronize, bad);
        }
    }

    /** Nothing is asked of the GPU for observers while calls are captured. */
    @Cases(from = "few")
    public void observed(NormalShape shape) {
        shape.run(
                backend,
                builder -> builder.observer(_ -> {}),
                context ->
                        prepared(context, shape, shape.world(), CallOptions.async())
                                .replayOnce(context));
    }

    /** What waits on the CPU cannot be captured, says so, and leaves the buffer usable. */
    @Test
    public void refusals(RankContext context) {
        NormalShape shape = firstShape();
        int rows = worstRows(shape);
        NormalRank rank = shape.rank(context);
        Buffer buffer = context.buffer();
        DispatchPlan exact = rank.plan().build();
        NormalRank worstCase = rank.expecting(rank.check().worstCase(rows));
        DispatchPlan worst = worstCase.plan().build();
        DispatchPlan fresh = worstCase.plan().build();
        rank.verify(buffer.dispatch(exact));
        worstCase.verify(buffer.dispatch(worst));
        CallOptions async = CallOptions.async();
        requireUncapturable(context, "numWorstTokens", () -> buffer.dispatch(exact, async));
        requireUncapturable(context, "without a compute stream", () -> buffer.dispatch(worst));
        requireUncapturable(context, "once before", () -> buffer.dispatch(fresh, async));
        requireUncapturable(
                context,
                "once before",
                () -> buffer.getDispatchLayout(rank.topkIdx(), shape.experts()));
        rank.roundTrip();
    }
}
