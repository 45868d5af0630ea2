package io.deepep.testkit.conformance.normal;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import io.deepep.NormalLimits;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.ExchangeShape;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Shapes of normal-mode cases: small, but every topology, hidden size and top-k that is a case of
 * its own somewhere.
 */
record NormalShape(
        int nodes, int ranksPerNode, int tokens, int hidden, DType dtype, int topk, int experts)
        implements ExchangeShape<NormalWorld, NormalRank> {
    /** For what does not depend on shapes; each rank has four experts. */
    static NormalShape small(EpTopology topology) {
        int numRanks = topology.numRanks();
        return bf16(topology.numRdmaRanks(), topology.numNvlRanks(), 20, 256, 4, 4 * numRanks);
    }

    /** Those that the backend has groups for. */
    static Stream<NormalShape> all(TestBackend backend) {
        return fitting(
                backend,
                bf16(1, 1, 16, 8, 1, 4),
                bf16(1, 2, 33, 136, 2, 6),
                bf16(1, 4, 20, 256, 6, 8),
                fp8(1, 4, 20, 128, 32, 64),
                bf16(1, 8, 12, 2944, 8, 64),
                fp8(1, 8, 24, 384, 8, 32),
                bf16(1, 3, 19, 9216, 3, 12),
                bf16(2, 1, 17, 136, 2, 4),
                bf16(2, 2, 21, 256, 32, 32),
                fp8(2, 2, 40, 384, 6, 12),
                bf16(2, 4, 18, 256, 8, 64),
                fp8(2, 8, 8, 128, 8, 256),
                bf16(3, 4, 10, 2944, 6, 168),
                fp8(4, 3, 10, 384, 1, 12),
                bf16(4, 3, 14, 8, 6, 24),
                bf16(2, 2, 9, 9216, 3, 16));
    }

    /** One group of one node and one of several, for what does not depend on shapes. */
    static Stream<NormalShape> few(TestBackend backend) {
        return fitting(
                backend,
                bf16(1, 4, 20, 256, 6, 16),
                bf16(2, 2, 24, 136, 4, 16),
                fp8(2, 2, 17, 384, 3, 8),
                bf16(2, 4, 12, 256, 6, 64),
                fp8(1, 8, 15, 256, 5, 24));
    }

    /** Nodes of sizes that no other shape has. */
    static Stream<NormalShape> otherNodeSizes(TestBackend backend) {
        return fitting(
                backend,
                fp8(1, 5, 11, 128, 4, 15),
                fp8(1, 6, 11, 128, 4, 18),
                fp8(1, 7, 11, 128, 4, 21),
                fp8(2, 3, 11, 128, 4, 18),
                fp8(2, 6, 11, 128, 4, 36),
                fp8(3, 2, 11, 128, 4, 18));
    }

    /** One node of more ranks than the kernels of small nodes take. */
    static Stream<NormalShape> largeNode(TestBackend backend) {
        return fitting(
                backend,
                bf16(1, 9, 9, 256, 4, 18),
                fp8(1, 11, 7, 128, 8, 33),
                bf16(1, 16, 5, 2944, 16, 16));
    }

    static Stream<NormalShape> largestNodes(TestBackend backend) {
        return fitting(
                backend,
                bf16(1, 36, 5, 128, 32, 36),
                fp8(1, 40, 5, 256, 4, 80),
                bf16(1, 72, 4, 384, 6, 144));
    }

    /** Several such nodes. */
    static Stream<NormalShape> largeNodes(TestBackend backend) {
        return fitting(
                backend,
                bf16(2, 9, 8, 256, 6, 36),
                fp8(3, 11, 5, 128, 4, 66),
                bf16(2, 16, 4, 2944, 16, 64));
    }

    static Stream<NormalShape> manyRanks(TestBackend backend) {
        return fitting(
                backend,
                bf16(8, 9, 4, 128, 6, 144),
                fp8(2, 36, 4, 128, 8, 144),
                bf16(2, 66, 2, 256, 3, 264));
    }

    /**
     * Groups of odd sizes, for which nothing is a power of two, and one of more nodes than a warp
     * has lanes.
     */
    static Stream<NormalShape> uneven(TestBackend backend) {
        return fitting(
                backend,
                bf16(3, 5, 9, 128, 4, 30),
                bf16(1, 7, 9, 128, 4, 14),
                fp8(9, 1, 8, 128, 4, 18),
                bf16(7, 3, 6, 256, 5, 42),
                bf16(34, 1, 4, 128, 3, 68));
    }

    /** Those whose rows combine takes. */
    static Stream<NormalShape> fewBf16(TestBackend backend) {
        return few(backend).filter(shape -> shape.dtype() == DType.BF16);
    }

    /** Those whose rows combine takes in FP8. */
    static Stream<NormalShape> fewForFp8(TestBackend backend) {
        return few(backend).filter(NormalShape::hasWholeGroups);
    }

    /** Whether a scale never stands for fewer channels than 128. */
    boolean hasWholeGroups() {
        return hidden % Fp8E4m3.CHANNELS_PER_SCALE == 0;
    }

    /** Whether the backend has such a group, and room for all its ranks. */
    boolean fits(TestBackend backend) {
        return Ranks.fit(backend, topology(), false);
    }

    private static Stream<NormalShape> fitting(TestBackend backend, NormalShape... shapes) {
        return Stream.of(shapes).filter(shape -> shape.fits(backend));
    }

    private static NormalShape bf16(int nodes, int perNode, int t, int h, int k, int e) {
        return new NormalShape(nodes, perNode, t, h, DType.BF16, k, e);
    }

    private static NormalShape fp8(int nodes, int perNode, int t, int h, int k, int e) {
        return new NormalShape(nodes, perNode, t, h, DType.FP8_E4M3, k, e);
    }

    /** The limits that just suffice. */
    @Override
    public void limit(Buffer.Builder builder) {
        builder.normal(limits());
    }

    NormalLimits limits() {
        return NormalLimits.of(Math.max(1, tokens), hidden, topk, experts);
    }

    /** A uniform routing; where there are many experts a group-limited one. */
    @Override
    public RoutingSpec spec() {
        RoutingSpec spec = ExchangeShape.super.spec();
        return experts == 64 && topk <= 8 ? spec.withGate(new Gate.GroupLimited(8, 4, true)) : spec;
    }

    @Override
    public NormalWorld world(RoutingSpec spec) {
        return NormalWorld.of(spec, hidden, dtype);
    }

    @Override
    public NormalWorld without(RoutingSpec spec, Set<Integer> masked) {
        return world(spec).without(masked);
    }

    @Override
    public NormalRank share(RankContext context, NormalWorld world) {
        return new NormalRank(context, world);
    }

    @Override
    public String toString() {
        return "%sx%s T=%s H=%s %s K=%s E=%s"
                .formatted(nodes, ranksPerNode, tokens, hidden, dtype, topk, experts);
    }
}
