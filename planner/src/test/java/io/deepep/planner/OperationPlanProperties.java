package io.deepep.planner;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.testkit.oracle.Traffic;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import net.jqwik.api.Assume;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.assertj.core.data.Offset;

/** Bytes and times of operations. */
final class OperationPlanProperties {
    private static Routing routing(int nodes, int ranksPerNode, int tokens) {
        int numRanks = nodes * ranksPerNode;
        return RoutingSpec.of(numRanks, tokens, 2 * numRanks, 2).withSeed(tokens).generate();
    }

    private static OperationPlan plan(
            Routing routing, EpTopology topology, Mode mode, Op op, int hidden, double nicGbps) {
        TokenSource source = TokenSource.recorded(routing);
        Simulation simulation = Simulation.of(mode, RowRule.ONCE_PER_RANK, source, topology);
        Shape shape =
                new Shape(routing.maxTokens(), hidden, routing.numTopk(), routing.numExperts());
        return OperationPlan.of(
                mode,
                op,
                simulation,
                WireFormat.of(mode, op, DType.FP8_E4M3, shape, topology),
                new Cluster(topology, KnownProfile.H200, nicGbps, 1, 0));
    }

    @Property(tries = 100, edgeCases = EdgeCasesMode.NONE)
    void payloadIsTheOraclesTrafficTimesTheRow(
            @ForAll @IntRange(min = 1, max = 3) int nodes,
            @ForAll @IntRange(min = 1, max = 4) int ranksPerNode,
            @ForAll @IntRange(min = 1, max = 9) int tokens,
            @ForAll @IntRange(min = 1, max = 8) int hundreds,
            @ForAll Op op) {
        EpTopology topology = new EpTopology(0, nodes * ranksPerNode, ranksPerNode);
        Routing routing = routing(nodes, ranksPerNode, tokens);
        Traffic all = new Traffic(0, 0);
        for (int rank = 0; rank < topology.numRanks(); rank++) {
            all = all.plus(Traffic.normal(routing, topology, rank));
        }
        int hidden = 128 * hundreds;
        long row = op == Op.DISPATCH ? hidden + 4 * (hidden / 128) : 2 * hidden;
        OperationPlan plan = plan(routing, topology, Mode.NORMAL, op, hidden, 400);
        assertThat(Math.round(plan.nvlink().payloadMean() * topology.numRanks()))
                .isEqualTo(all.nvlinkRows() * row);
        assertThat(Math.round(plan.rdma().payloadMean() * topology.numRanks()))
                .isEqualTo(all.rdmaRows() * row);
    }

    /** A rank sends records of its own tokens, not of as many as another rank has. */
    @Property(tries = 100, edgeCases = EdgeCasesMode.NONE)
    void bytesOfADispatchBetweenNodes(
            @ForAll @IntRange(min = 1, max = 4) int nodes,
            @ForAll @IntRange(min = 1, max = 10) int ranksPerNode,
            @ForAll @IntRange(min = 1, max = 9) int tokens,
            @ForAll @IntRange(min = 1, max = 2) int numTopk,
            @ForAll long seed) {
        int numRanks = nodes * ranksPerNode;
        EpTopology topology = new EpTopology(0, numRanks, ranksPerNode);
        Routing routing =
                RoutingSpec.of(numRanks, tokens, 2 * numRanks, numTopk)
                        .withVaryingTokens(true)
                        .withSeed(seed)
                        .generate();
        Assume.that(routing.maxTokens() > 0);
        long places = 4L * Math.max(8, Math.ceilDiv(ranksPerNode, 4) * 4);
        long record = Math.ceilDiv(places + 8L * numTopk, 16) * 16L;
        long header = 4L * (32 + numRanks + 2 * ranksPerNode);
        long expected = 0;
        for (int rank = 0; rank < numRanks; rank++) {
            long rows = Traffic.normal(routing, topology, rank).rdmaRows();
            long others = nodes - 1L;
            expected +=
                    rows * (640 + places) + others * (header + routing.numTokens(rank) * record);
        }
        OperationPlan.LinkBytes rdma =
                plan(routing, topology, Mode.NORMAL, Op.DISPATCH, 512, 400).rdma();
        assertThat(Math.round(rdma.mean() * numRanks)).isEqualTo(expected);
        assertThat(rdma.max()).isGreaterThanOrEqualTo(rdma.mean());
    }

    @Property(tries = 100, edgeCases = EdgeCasesMode.NONE)
    void growsWithHidden(
            @ForAll @IntRange(min = 1, max = 3) int nodes,
            @ForAll @IntRange(min = 1, max = 20) int narrow,
            @ForAll @IntRange(min = 1, max = 20) int more,
            @ForAll Mode mode,
            @ForAll Op op) {
        EpTopology topology = new EpTopology(0, nodes * 4, 4);
        Routing routing = routing(nodes, 4, 8);
        OperationPlan small = plan(routing, topology, mode, op, 128 * narrow, 400);
        OperationPlan large = plan(routing, topology, mode, op, 128 * (narrow + more), 400);
        assertThat(large.nvlink().mean()).isGreaterThan(small.nvlink().mean());
        assertThat(large.slowestMicros()).isGreaterThanOrEqualTo(small.slowestMicros());
        assertThat(large.rdma().max()).isGreaterThanOrEqualTo(small.rdma().max());
        assertThat(small.slowestMicros()).isGreaterThanOrEqualTo(small.typicalMicros());
    }

    /** A row each, and a header, a flag and an acknowledgement for each rank of other nodes. */
    @Property(tries = 20, edgeCases = EdgeCasesMode.NONE)
    void smallPutsCostTheRateOfTheNic(
            @ForAll @IntRange(min = 2, max = 4) int nodes,
            @ForAll @IntRange(min = 1, max = 9) int tokens) {
        EpTopology topology = new EpTopology(0, nodes * 2, 2);
        OperationPlan plan =
                plan(
                        routing(nodes, 2, tokens),
                        topology,
                        Mode.LOW_LATENCY,
                        Op.DISPATCH,
                        128,
                        100_000);
        double puts = plan.rdma().rows().max() + 3 * (topology.numRanks() - 2);
        assertThat(plan.slowestMicros())
                .isCloseTo(KnownProfile.LOW_LATENCY_RDMA_MICROS + puts / 180, Offset.offset(1e-9));
        assertThat(plan.typicalMicros()).isLessThanOrEqualTo(plan.slowestMicros());
    }

    @Property(tries = 50, edgeCases = EdgeCasesMode.NONE)
    void aFasterNicIsNeverSlower(
            @ForAll @IntRange(min = 1, max = 3) int nodes,
            @ForAll @IntRange(min = 100, max = 800) int gbps,
            @ForAll Mode mode,
            @ForAll Op op) {
        EpTopology topology = new EpTopology(0, nodes * 4, 4);
        Routing routing = routing(nodes, 4, 8);
        OperationPlan slow = plan(routing, topology, mode, op, 7168, gbps);
        OperationPlan fast = plan(routing, topology, mode, op, 7168, 2 * gbps);
        assertThat(fast.slowestMicros()).isLessThanOrEqualTo(slow.slowestMicros());
        if (nodes == 1) {
            assertThat(fast.slowestMicros()).isEqualTo(slow.slowestMicros());
            assertThat(fast.rdma().max()).isZero();
        }
    }
}
