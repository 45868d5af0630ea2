package io.deepep.testkit.conformance.lowlatency;

import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.ExchangeShape;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;

/** Shapes of low-latency cases. */
public record LowLatencyShape(
        int nodes, int ranksPerNode, int tokens, int hidden, int topk, int experts)
        implements ExchangeShape<LowLatencyWorld, LowLatencyRank> {
    /** A shape of any group. */
    public static LowLatencyShape of(
            EpTopology topology, int tokens, int hidden, int topk, int experts) {
        return new LowLatencyShape(
                topology.numRdmaRanks(), topology.numNvlRanks(), tokens, hidden, topk, experts);
    }

    /** Those that the backend has groups for. */
    public static Stream<LowLatencyShape> all(TestBackend backend) {
        return fitting(
                backend,
                new LowLatencyShape(1, 1, 9, 128, 1, 2),
                new LowLatencyShape(1, 2, 16, 384, 2, 6),
                new LowLatencyShape(1, 4, 12, 640, 6, 8),
                new LowLatencyShape(1, 8, 8, 2944, 8, 24),
                new LowLatencyShape(2, 1, 13, 256, 2, 4),
                new LowLatencyShape(2, 2, 16, 512, 32, 32),
                new LowLatencyShape(2, 4, 8, 256, 8, 64),
                new LowLatencyShape(3, 4, 5, 384, 6, 24),
                new LowLatencyShape(2, 8, 4, 128, 8, 32));
    }

    /** A group of one node and one of several, for what does not depend on shapes. */
    public static Stream<LowLatencyShape> few(TestBackend backend) {
        return fitting(
                backend,
                new LowLatencyShape(1, 4, 12, 256, 6, 8),
                new LowLatencyShape(2, 2, 10, 384, 3, 12));
    }

    /** Nodes of sizes that no other shape has. */
    static Stream<LowLatencyShape> otherNodeSizes(TestBackend backend) {
        return fitting(
                backend,
                new LowLatencyShape(1, 3, 9, 256, 5, 6),
                new LowLatencyShape(1, 5, 9, 256, 5, 10),
                new LowLatencyShape(1, 6, 9, 256, 5, 12),
                new LowLatencyShape(1, 7, 9, 256, 5, 14),
                new LowLatencyShape(2, 3, 9, 256, 5, 12),
                new LowLatencyShape(3, 2, 9, 256, 5, 12));
    }

    /** As many tokens as the mode allows. */
    static Stream<LowLatencyShape> mostTokens(TestBackend backend) {
        return fitting(
                backend,
                new LowLatencyShape(1, 2, LowLatencyLimits.MAX_TOKENS, 128, 4, 8),
                new LowLatencyShape(2, 1, LowLatencyLimits.MAX_TOKENS, 128, 4, 8));
    }

    /** Each rank has as many experts as a token selects. */
    static Stream<LowLatencyShape> selectionsOfOneRank(TestBackend backend) {
        return fitting(
                backend,
                new LowLatencyShape(1, 2, 9, 2176, 32, 64),
                new LowLatencyShape(1, 4, 9, 2176, 7, 28),
                new LowLatencyShape(2, 2, 9, 2176, 32, 128),
                new LowLatencyShape(2, 2, 9, 2176, 5, 20));
    }

    /** Of numbers up to these, some are few for the kernels and some are not. */
    static Stream<LowLatencyShape> fewAndManyTokens(TestBackend backend) {
        return fitting(
                backend,
                new LowLatencyShape(1, 2, 100, 640, 8, 16),
                new LowLatencyShape(1, 4, 100, 640, 6, 24),
                new LowLatencyShape(2, 2, 100, 384, 6, 24));
    }

    private static Stream<LowLatencyShape> fitting(TestBackend backend, LowLatencyShape... shapes) {
        return Stream.of(shapes).filter(shape -> Ranks.fit(backend, shape.topology()));
    }

    public static Stream<Arguments> allFormats(TestBackend backend) {
        return all(backend)
                .flatMap(
                        shape ->
                                Arrays.stream(LowLatencyFormat.values())
                                        .map(format -> Arguments.of(shape, format)));
    }

    @Override
    public void limit(Buffer.Builder builder) {
        builder.lowLatency(limits());
    }

    public LowLatencyLimits limits() {
        return new LowLatencyLimits(tokens, hidden, topk, experts);
    }

    @Override
    public LowLatencyWorld world(RoutingSpec spec) {
        return LowLatencyWorld.of(spec, limits());
    }

    @Override
    public LowLatencyWorld without(RoutingSpec spec, Set<Integer> masked) {
        return LowLatencyWorld.of(spec, limits(), routing -> routing.without(masked));
    }

    /** The rank's share of the ragged exchange, with rows of another size. */
    LowLatencyRank rankOf(RankContext context, int rowSize) {
        return share(context, context.shared(rowSize, this::ofRows));
    }

    /** The same with tokens of any bits, and of a size that no limit has. */
    LowLatencyRank packedRank(RankContext context) {
        return share(context, context.shared("packed", _ -> packed()));
    }

    private LowLatencyWorld packed() {
        LowLatencyWorld world = ofRows(hidden / 2 + 8);
        world.scramble();
        return world;
    }

    private LowLatencyWorld ofRows(int rowSize) {
        return LowLatencyWorld.of(raggedSpec(), limits(), rowSize);
    }

    @Override
    public LowLatencyRank share(RankContext context, LowLatencyWorld world) {
        return new LowLatencyRank(context, world);
    }

    @Override
    public String toString() {
        return "%sx%s T=%s H=%s K=%s E=%s"
                .formatted(nodes, ranksPerNode, tokens, hidden, topk, experts);
    }
}
