package io.deepep.testkit.conformance.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.conformance.normal.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Low-latency mode against the oracle: dispatch and the FP8 cast bit for bit, combine within the
 * rounding of fp32 sums.
 */
@BackendSuite
public record LowLatencyConformance(TestBackend backend) implements LowLatencySuite {
    private static final int CHAINED_PAIRS = 300;
    private static final int DIFFERENT_PAIRS = 23;

    /** Pairs of dispatch and combine of all kinds, one after the other over one buffer. */
    @Tag("manyCalls")
    @Cases
    @GroupSource({"1, 4", "2, 2"})
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
    @Cases
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
    @Tag("manyCalls")
    @Cases
    @GroupSource({"1, 4", "2, 2"})
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

    /** Two runs with new buffers give the same bits. */
    @Cases
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

    @Cases
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
}
