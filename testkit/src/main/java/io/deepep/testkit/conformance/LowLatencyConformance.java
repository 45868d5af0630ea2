package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchRequest;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Low-latency mode against the oracle: dispatch and the FP8 cast bit for bit, combine within the
 * rounding of fp32 sums.
 */
public abstract class LowLatencyConformance extends LowLatencyCallConformance {
    private static final int CHAINED_PAIRS = 300;
    private static final int DIFFERENT_PAIRS = 23;

    /**
     * Two batches in flight: the second is sent before the first is received, on the way out and on
     * the way home.
     */
    @ParameterizedTest
    @MethodSource(FEW)
    public void twoInFlight(LowLatencyShape shape) {
        LowLatencyWorld a = shape.world(31);
        LowLatencyWorld b = shape.world(32);
        LowLatencyFormat format = LowLatencyFormat.FP8;
        run(
                shape,
                context -> {
                    LowLatencyRank rankA = new LowLatencyRank(context, a);
                    LowLatencyRank rankB = new LowLatencyRank(context, b);
                    LowLatencyDispatchRequest requestA =
                            rankA.request(format).receiveHook(true).build();
                    LowLatencyDispatchRequest requestB =
                            rankB.request(format).receiveHook(true).build();
                    Buffer buffer = context.buffer();
                    for (int round = 0; round < 5; round++) {
                        LowLatencyDispatchResult outA = buffer.lowLatencyDispatch(requestA);
                        LowLatencyDispatchResult outB = buffer.lowLatencyDispatch(requestB);
                        outA.receiveHook().run();
                        rankA.verify(outA, format);
                        LowLatencyCombineResult homeA =
                                buffer.lowLatencyCombine(
                                        rankA.home(outA.handle()).receiveHook(true).build());
                        outB.receiveHook().run();
                        rankB.verify(outB, format);
                        LowLatencyCombineResult homeB =
                                buffer.lowLatencyCombine(
                                        rankB.home(outB.handle()).receiveHook(true).build());
                        homeA.receiveHook().run();
                        rankA.verify(homeA);
                        homeB.receiveHook().run();
                        rankB.verify(homeB);
                    }
                });
    }

    /** Results and handle of a dispatch survive one more dispatch; the second next ends them. */
    @ParameterizedTest
    @MethodSource(FEW)
    public void resultsLiveForTwoDispatches(LowLatencyShape shape) {
        LowLatencyWorld a = shape.world(33);
        LowLatencyWorld b = shape.world(34);
        run(
                shape,
                context -> {
                    LowLatencyRank rankA = new LowLatencyRank(context, a);
                    LowLatencyRank rankB = new LowLatencyRank(context, b);
                    LowLatencyDispatchResult first = rankA.dispatch(LowLatencyFormat.BF16);
                    LowLatencyDispatchResult second = rankB.dispatch(LowLatencyFormat.FP8);
                    rankA.verify(first, LowLatencyFormat.BF16);
                    rankB.combine(second.handle());
                    rankA.combine(first.handle());
                });
    }

    /** Pairs of dispatch and combine of all kinds, one after the other over one buffer. */
    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2"})
    public void chainedPairs(int nodes, int ranksPerNode) {
        LowLatencyShape shape = new LowLatencyShape(nodes, ranksPerNode, 8, 256, 4, 8);
        List<LowLatencyWorld> worlds = new ArrayList<>();
        for (int i = 0; i < DIFFERENT_PAIRS; i++) {
            RoutingSpec spec =
                    (i % 2 == 0 ? shape.spec().withVaryingTokens(true) : shape.raggedSpec());
            worlds.add(shape.world(spec.withSeed(i)));
        }
        LowLatencyFormat[] formats = LowLatencyFormat.values();
        run(
                shape,
                context -> {
                    List<LowLatencyRank> ranks =
                            worlds.stream()
                                    .map(world -> new LowLatencyRank(context, world))
                                    .toList();
                    for (int i = 0; i < CHAINED_PAIRS; i++) {
                        ranks.get(i % ranks.size()).roundTrip(formats[i / 3 % formats.length]);
                    }
                });
    }

    /** Dispatches whose combine never comes do no harm. */
    @ParameterizedTest
    @MethodSource(FEW)
    public void dispatchesWithoutCombine(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.spec());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    for (int i = 0; i < 5; i++) {
                        rank.dispatch(LowLatencyFormat.FP8);
                    }
                    rank.roundTrip(LowLatencyFormat.FP8);
                });
    }

    /** Both modes share a buffer and need no cleaning in between. */
    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2"})
    public void alternatingWithNormalMode(int nodes, int ranksPerNode) {
        LowLatencyShape shape = new LowLatencyShape(nodes, ranksPerNode, 8, 256, 4, 8);
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        NormalWorld normal =
                NormalWorld.bf16(RoutingSpec.of(nodes * ranksPerNode, 20, 16, 4).withSeed(1), 136);
        Ranks.run(
                backend(),
                shape.topology(),
                builder -> builder.lowLatency(shape.limits()).normal(normal.limits()),
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    NormalRank normalRank = new NormalRank(context, normal);
                    for (int i = 0; i < 8; i++) {
                        normalRank.roundTrip();
                        LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.FP8);
                        normalRank.roundTrip();
                        rank.combine(result.handle());
                    }
                });
    }

    /**
     * Cleaning ends what an engine abandoned midway: its sends are not taken for later ones, its
     * handle is refused.
     */
    @ParameterizedTest
    @MethodSource(FEW)
    public void cleaning(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(41);
        LowLatencyWorld abandoned = shape.world(42);
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, world);
                    LowLatencyRank loser = new LowLatencyRank(context, abandoned);
                    Buffer buffer = context.buffer();
                    for (int round = 0; round < 3; round++) {
                        rank.roundTrip(LowLatencyFormat.FP8);
                        LowLatencyDispatchResult lost =
                                buffer.lowLatencyDispatch(
                                        loser.request(LowLatencyFormat.FP8)
                                                .receiveHook(true)
                                                .build());
                        buffer.cleanLowLatencyBuffer();
                        assertThatThrownBy(
                                        () ->
                                                buffer.lowLatencyCombine(
                                                        loser.home(lost.handle()).build()))
                                .isInstanceOfAny(
                                        IllegalArgumentException.class,
                                        IllegalStateException.class);
                        rank.roundTrip(LowLatencyFormat.BF16);
                    }
                });
    }

    /** Two runs with new buffers give the same bits. */
    @ParameterizedTest
    @MethodSource(FEW)
    public void sameBitsOnEveryRun(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.raggedSpec());
        ConcurrentMap<Integer, List<Tensor>> runs = new ConcurrentHashMap<>();
        for (int i = 0; i < 2; i++) {
            run(
                    shape,
                    context -> {
                        LowLatencyRank rank = new LowLatencyRank(context, world);
                        List<Tensor> seen =
                                runs.computeIfAbsent(context.rank(), r -> new ArrayList<>());
                        seen.add(rank.roundTrip(LowLatencyFormat.FP8));
                        seen.add(rank.roundTrip(LowLatencyFormat.FP8));
                    });
        }
        // Those of this process's ranks.
        assertThat(runs).isNotEmpty();
        for (List<Tensor> seen : runs.values()) {
            assertThat(seen).hasSize(4);
            for (Tensor home : seen) {
                assertThat(HostTensors.firstDifference(seen.getFirst(), home)).isEqualTo(-1);
            }
        }
    }

    @ParameterizedTest
    @MethodSource(ALL)
    public void exactSizeHint(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world(shape.spec());
        EpTopology topology = shape.topology();
        long bytes = Buffer.lowLatencyRdmaSizeHint(shape.limits(), topology);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    Buffer.Builder builder =
                            Ranks.builder(backend(), communicator, topology)
                                    .lowLatency(shape.limits());
                    assertThatThrownBy(builder.numRdmaBytes(bytes - 1)::open)
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("numRdmaBytes=" + (bytes - 1));
                    try (Buffer buffer = builder.numRdmaBytes(bytes).open()) {
                        RankContext context = new RankContext(backend(), communicator, buffer);
                        new LowLatencyRank(context, world).roundTrip(LowLatencyFormat.FP8_UE8M0);
                    }
                });
    }

    /**
     * A masked rank is neither sent to nor waited for; unmasked and cleaned, it takes part again.
     */
    @ParameterizedTest
    @MethodSource(FEW)
    public void maskedRank(LowLatencyShape shape) {
        int dead = shape.topology().numRanks() - 1;
        LowLatencyWorld whole = shape.world(51);
        LowLatencyWorld rest =
                LowLatencyWorld.without(Set.of(dead), shape.spec().withSeed(52), shape.limits());
        run(
                shape,
                context -> {
                    LowLatencyRank rank = new LowLatencyRank(context, whole);
                    Buffer buffer = context.buffer();
                    rank.roundTrip(LowLatencyFormat.FP8);
                    if (context.rank() != dead) {
                        buffer.lowLatencyUpdateMask(dead, true);
                        assertThat(buffer.lowLatencyQueryMask()[dead]).isEqualTo(1);
                        LowLatencyRank survivor = new LowLatencyRank(context, rest);
                        for (int i = 0; i < 3; i++) {
                            survivor.roundTrip(LowLatencyFormat.FP8);
                        }
                        buffer.lowLatencyCleanMask();
                    }
                    assertThat(buffer.lowLatencyQueryMask()).containsOnly(0);
                    buffer.cleanLowLatencyBuffer();
                    rank.roundTrip(LowLatencyFormat.FP8);
                });
    }

    /** With masking on, a rank that does not come is masked, and the others go on without it. */
    @Test
    public void timedOutRankIsMasked() {
        LowLatencyShape shape = new LowLatencyShape(1, 4, 6, 128, 4, 8);
        int dead = 2;
        LowLatencyWorld rest = LowLatencyWorld.without(Set.of(dead), shape.spec(), shape.limits());
        Ranks.run(
                backend(),
                shape.topology(),
                builder ->
                        builder.lowLatency(shape.limits())
                                .timeout(Duration.ofSeconds(2))
                                .maskTimedOutRanks(true),
                context -> {
                    if (context.rank() == dead) {
                        return;
                    }
                    LowLatencyRank survivor = new LowLatencyRank(context, rest);
                    survivor.dispatch(LowLatencyFormat.BF16);
                    assertThat(context.buffer().lowLatencyQueryMask()).containsExactly(0, 0, 1, 0);
                    survivor.roundTrip(LowLatencyFormat.BF16);
                });
    }
}
