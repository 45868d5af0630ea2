package io.deepep.testkit.conformance.lowlatency;

import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;

/** Shapes of low-latency cases. */
public record LowLatencyShape(
        int nodes, int ranksPerNode, int tokens, int hidden, int topk, int experts) {
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

    public EpTopology topology() {
        return Ranks.topology(nodes, ranksPerNode);
    }

    public LowLatencyLimits limits() {
        return new LowLatencyLimits(tokens, hidden, experts, topk);
    }

    public RoutingSpec spec() {
        return RoutingSpec.of(nodes * ranksPerNode, tokens, experts, topk)
                .withSeed(toString().hashCode());
    }

    /** Masked and repeated selections, different numbers of tokens, one rank without any. */
    public RoutingSpec raggedSpec() {
        int idle = nodes * ranksPerNode > 1 ? 1 : 0;
        return spec().withMaskedShare(0.3)
                .withDuplicateShare(0.3)
                .withVaryingTokens(true)
                .withIdleRanks(idle);
    }

    public LowLatencyWorld world(RoutingSpec spec) {
        return LowLatencyWorld.of(spec, limits());
    }

    /** Another exchange of the same shape. */
    public LowLatencyWorld world(long seed) {
        return world(spec().withSeed(seed));
    }

    @Override
    public String toString() {
        return nodes
                + "x"
                + ranksPerNode
                + " T="
                + tokens
                + " H="
                + hidden
                + " K="
                + topk
                + " E="
                + experts;
    }
}
