package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;
import static io.deepep.testkit.conformance.Misbehaviour.requireTimeout;
import static io.deepep.testkit.conformance.Misbehaviour.requireUncapturable;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.Graph;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Stream;
import io.deepep.error.DeepEpException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.LowLatencyWorld;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Low-latency calls captured into a graph and replayed with other tokens and another routing in the
 * same memory, each replay compared with the oracle. {@code -Ddeepep.replays} makes them thousands.
 * For backends that have graphs.
 */
@BackendSuite(graphs = true)
public record LowLatencyGraphConformance(TestBackend backend) implements RankGroup {
    private static final int NUM_EXPERTS = 8;
    private static final int NUM_WORLDS = 5;
    private static final String FAILED = "the dispatch of the handle failed";
    private static final int NUM_REPLAYS = Integer.getInteger("deepep.replays", 21);

    private LowLatencyShape shape() {
        return LowLatencyShape.of(Ranks.four(backend), 12, 256, 6, NUM_EXPERTS);
    }

    @Override
    public void limit(Buffer.Builder builder) {
        shape().limit(builder);
    }

    private List<LowLatencyWorld> worlds() {
        return IntStream.range(0, NUM_WORLDS).mapToObj(shape()::world).toList();
    }

    private static LowLatencyPairs pairs(
            RankContext context, LowLatencyWorld first, CallOptions options) {
        return new LowLatencyPairs(new LowLatencyRank(context, first), options);
    }

    private List<LowLatencyWorld> worlds(RankContext context) {
        return context.shared("worlds", _ -> worlds());
    }

    /** An odd number of pairs in a graph: each replay begins with the other parity of slots. */
    @Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    @ParameterizedTest
    @CsvSource({
        "BF16, false, false, 1, false, BF16",
        "FP8, false, true, 2, false, BF16",
        "FP8_UE8M0, true, true, 1, false, BF16",
        "FP8_POWER_OF_TWO, true, false, 3, false, BF16",
        "FP8, false, false, 1, true, BF16",
        "BF16, true, true, 2, true, BF16",
        "FP8, false, true, 1, false, FP8",
        "BF16, true, false, 2, true, FP8"
    })
    public void replay(
            LowLatencyFormat format,
            boolean hook,
            boolean onEngineStream,
            int number,
            boolean preReduced,
            CombineFormat homeFormat,
            RankContext context) {
        List<LowLatencyWorld> worlds = worlds(context);
        try (TestStream engine = onEngineStream ? backend.newStream(context.device()) : null) {
            Stream stream =
                    engine != null ? engine.stream() : context.buffer().communicationStream();
            CallOptions options =
                    engine != null ? CallOptions.sync().on(stream) : CallOptions.async();
            context.meet();
            LowLatencyRank first = new LowLatencyRank(context, worlds.getFirst());
            LowLatencyPairs pairs =
                    new LowLatencyPairs(first, format, options, hook, preReduced, homeFormat);
            pairs.prepare();
            Runnable calls = () -> IntStream.range(0, number).forEach(_ -> pairs.enqueue());
            try (Graph graph = Graph.capture(stream, calls)) {
                context.meet();
                pairs.replay(graph, worlds, NUM_REPLAYS);
            }
            // What is not captured goes on as before.
            new LowLatencyRank(context, worlds.getLast()).roundTrip(format);
            pairs.load(worlds.getFirst());
            pairs.prepare();
        }
    }

    /** A layer in a graph: what is combined is made, between the two calls, of what came. */
    @Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    @Test
    public void expertsInTheGraph(RankContext context) {
        List<LowLatencyWorld> worlds =
                context.shared(
                        "worlds",
                        _ -> {
                            List<LowLatencyWorld> all = worlds();
                            all.forEach(LowLatencyWorld::withIdentityExperts);
                            return all;
                        });
        try (TestStream engine = backend.newStream(context.device())) {
            CallOptions options = CallOptions.sync().on(engine.stream());
            context.meet();
            LowLatencyRank first = new LowLatencyRank(context, worlds.getFirst());
            LowLatencyPairs pairs =
                    new LowLatencyPairs(first, LowLatencyFormat.BF16, options, false);
            pairs.makeOutputs(engine::copy);
            pairs.prepare();
            try (Graph graph = pairs.capture(context, engine.stream())) {
                for (int i = 1; i <= NUM_REPLAYS; i++) {
                    pairs.load(worlds.get(i % NUM_WORLDS));
                    pairs.poisonOutputs();
                    graph.replay();
                    pairs.verify();
                }
            }
        }
    }

    /** A replay with a bad index fails on every rank, in both calls; the next one is good again. */
    @Test
    public void replayOfABadRouting(RankContext context) {
        List<LowLatencyWorld> worlds = worlds(context);
        LowLatencyPairs pairs = pairs(context, worlds.getFirst(), CallOptions.async());
        pairs.prepare();
        try (Graph graph = pairs.capture(context, context.buffer().communicationStream())) {
            for (int i = 0; i < 3; i++) {
                pairs.load(worlds.get(i));
                pairs.memory().loadBadExpert();
                graph.replay();
                String bad = "topkIdx[3][1]=" + NUM_EXPERTS;
                requireRouting(pairs.received().event()::synchronize, bad);
                requireRouting(pairs.received().event()::synchronize, bad);
                requireRouting(0, pairs.home().event()::synchronize, FAILED);
                pairs.replay(graph, worlds.get(i + 1));
                // An ordinary call, after a failure.
                LowLatencyHandle handle = pairs.received().handle();
                LowLatencyCombinePlan again = pairs.memory().home(handle).build();
                pairs.expected().verify(context.buffer().lowLatencyCombine(again));
            }
        }
    }

    /**
     * A rank that stays away from one replay, where ranks are not masked: no later replay goes on
     * without it as if nothing had happened.
     */
    @Test
    public void replayAfterARankStayedAway() {
        List<LowLatencyWorld> worlds = worlds();
        shape().run(
                        backend(),
                        b -> b.timeout(Misbehaviour.SHORT),
                        context -> {
                            LowLatencyPairs pairs =
                                    pairs(context, worlds.getFirst(), CallOptions.async());
                            context.meet();
                            pairs.prepare();
                            Stream stream = context.buffer().communicationStream();
                            try (Graph graph = pairs.capture(context, stream)) {
                                for (int i = 0; i < 3; i++) {
                                    context.meet();
                                    if (!context.isCulprit()) {
                                        graph.replay();
                                        requireTimeout(
                                                context.rank(),
                                                "dispatch",
                                                pairs.received().event()::synchronize);
                                        requireTimeout(
                                                context.rank(),
                                                "combine",
                                                pairs.home().event()::synchronize);
                                    }
                                }
                                context.meet();
                            }
                        });
    }

    /**
     * Closing while a replay waits on an engine's stream for a rank that stays away: the memory
     * stays until the replay is over.
     */
    @Test
    public void closeDuringAReplay() {
        List<LowLatencyWorld> worlds = worlds();
        shape().run(
                        backend(),
                        b -> b.timeout(Duration.ofSeconds(2)),
                        context -> {
                            try (TestStream engine = backend.newStream(context.device())) {
                                closeDuringAReplay(context, worlds.getFirst(), engine.stream());
                            }
                        });
    }

    private void closeDuringAReplay(RankContext context, LowLatencyWorld world, Stream stream) {
        LowLatencyPairs pairs = pairs(context, world, CallOptions.sync().on(stream));
        context.meet();
        pairs.prepare();
        try (Graph graph = pairs.capture(context, stream)) {
            if (context.isCulprit()) {
                return;
            }
            graph.replay();
            context.buffer().close();
            assertThat(pairs.received().event().isDone()).isTrue();
            assertThat(pairs.home().event().isDone()).isTrue();
        }
    }

    /** A mask that changes while a replay waits on an engine's stream is that of later calls. */
    @Test
    public void maskDuringAReplay(RankContext context) {
        int other = (context.rank() + 1) % context.topology().numRanks();
        try (TestStream engine = backend.newStream(context.device())) {
            CallOptions options = CallOptions.sync().on(engine.stream());
            LowLatencyPairs pairs = pairs(context, worlds(context).getFirst(), options);
            context.meet();
            pairs.prepare();
            try (Graph graph = pairs.capture(context, engine.stream())) {
                for (int i = 0; i < 2; i++) {
                    Misbehaviour.beLate(context);
                    graph.replay();
                    context.buffer().updateMask(other, true);
                    assertThat(pairs.home().event().isDone()).isTrue();
                    context.buffer().updateMask(other, false);
                    pairs.verify();
                }
            }
        }
    }

    /** Calls in the order of the buffer's stream alone: replays record no event. */
    @Test
    public void replayInTheOrderOfTheStream(RankContext context) {
        List<LowLatencyWorld> worlds = worlds(context);
        Stream stream = context.buffer().communicationStream();
        LowLatencyPairs pairs = pairs(context, worlds.getFirst(), CallOptions.sync().on(stream));
        pairs.prepare();
        try (Graph graph = pairs.capture(context, stream)) {
            for (int i = 1; i <= NUM_REPLAYS; i++) {
                pairs.load(worlds.get(i % NUM_WORLDS));
                boolean bad = i % 4 == 0;
                if (bad) {
                    pairs.memory().loadBadExpert();
                }
                graph.replay();
                if (bad) {
                    String mention = "topkIdx[3][1]=" + NUM_EXPERTS;
                    requireRouting(pairs.received().event()::synchronize, mention);
                    requireRouting(0, pairs.home().event()::synchronize, FAILED);
                } else {
                    pairs.verify();
                }
            }
        }
    }

    /** Nothing is asked of the GPU for observers while calls are captured. */
    @Test
    public void observed() {
        LowLatencyWorld world = shape().world(0);
        shape().run(
                        backend,
                        builder -> builder.observer(_ -> {}),
                        context -> pairs(context, world, CallOptions.async()).replayOnce(context));
    }

    /** What waits on the CPU or allocates cannot be captured, and says so. */
    @Test
    public void refusals(RankContext context) {
        LowLatencyRank rank = shape().rank(context, 0);
        Buffer buffer = context.buffer();
        LowLatencyFormat format = LowLatencyFormat.FP8;
        LowLatencyDispatchPlan used = rank.plan(format).build();
        LowLatencyDispatchPlan fresh = rank.plan(format).build();
        rank.verify(buffer.lowLatencyDispatch(used), format);
        requireUncapturable(
                context, "without a compute stream", () -> buffer.lowLatencyDispatch(used));
        requireUncapturable(
                context,
                "once before",
                () -> buffer.lowLatencyDispatch(fresh, CallOptions.async()));
        requireUncapturable(
                context,
                "has made it invalid",
                () -> {
                    assertThatThrownBy(buffer.communicationStream()::synchronize)
                            .isInstanceOf(DeepEpException.class);
                    buffer.lowLatencyDispatch(used, CallOptions.async());
                });
        rank.roundTrip(format);
    }
}
