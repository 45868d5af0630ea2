package io.deepep.testkit.oracle;

import static io.deepep.testkit.oracle.HandMadeRouting.row;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.testkit.routing.Routing;
import java.util.Set;
import org.junit.jupiter.api.Test;

class NormalOracleTest {
    private final NormalOracle oracle = new NormalOracle(HandMadeRouting.ROUTING);

    @Test
    void rowsComeBySourceRankAndToken() {
        assertThat(oracle.rows(0)).containsExactly(row(0, 0), row(0, 2), row(1, 0));
        assertThat(oracle.rows(1)).containsExactly(row(0, 1), row(0, 2), row(1, 2));
    }

    @Test
    void localExpertsAndWeights() {
        assertThat(oracle.localExperts(0, row(0, 0))).containsExactly(0, 1);
        assertThat(oracle.localExperts(0, row(0, 2))).containsExactly(-1, 0);
        assertThat(oracle.localWeights(0, row(0, 2))).containsExactly(0, .125f);
        assertThat(oracle.localExperts(0, row(1, 0))).containsExactly(1, 1);
        assertThat(oracle.localExperts(1, row(0, 1))).containsExactly(0, -1);
        assertThat(oracle.localWeights(1, row(0, 1))).containsExactly(1, 0);
    }

    @Test
    void countsAreSelectionsRoundedUp() {
        assertThat(oracle.counts(0, 1)).containsExactly(2, 3);
        assertThat(oracle.counts(0, 4)).containsExactly(4, 4);
        assertThat(oracle.counts(1, 1)).containsExactly(2, 2);
        assertThat(oracle.expertOffsets(0, 2)).containsExactly(0, 2, 6);
    }

    @Test
    void expandedRowsAreGroupedByExpertAndPadded() {
        assertThat(oracle.expandedRows(0, 2))
                .containsExactly(
                        row(0, 0, 0),
                        row(0, 2, 1),
                        row(0, 0, 1),
                        row(1, 0, 0),
                        row(1, 0, 1),
                        SourceRow.PADDING);
        assertThat(oracle.expandedRows(1, 1))
                .containsExactly(row(0, 1, 0), row(1, 2, 0), row(0, 2, 0), row(1, 2, 1));
    }

    @Test
    void layouts() {
        assertThat(oracle.routing().tokensPerRank()[0]).containsExactly(2, 2);
        assertThat(oracle.routing().tokensPerRank()[1]).containsExactly(1, 1);
        assertThat(oracle.selectionsPerExpert(0)).containsExactly(2, 1, 1, 1);
        assertThat(oracle.selectionsPerExpert(1)).containsExactly(0, 2, 1, 1);
        assertThat(oracle.tokensPerNode(0, 1)).containsExactly(2, 2);
        assertThat(oracle.tokensPerNode(0, 2)).containsExactly(3);
        assertThat(oracle.tokensPerNode(1, 2)).containsExactly(2);
    }

    @Test
    void lowLatencyRowsArePackedByExpert() {
        LowLatencyOracle fast = new LowLatencyOracle(HandMadeRouting.ROUTING);
        assertThat(fast.rows(0, 0)).containsExactly(row(0, 0, 0), row(0, 2, 1));
        assertThat(fast.rows(0, 1)).containsExactly(row(0, 0, 1), row(1, 0, 0), row(1, 0, 1));
        assertThat(fast.counts(1)).containsExactly(2, 2);
        assertThat(fast.countFrom(0, 1, 1)).isEqualTo(2);
        assertThat(fast.beginOf(0, 1, 1)).isEqualTo(1);
        assertThat(fast.rowOf(1, 0, 1)).isEqualTo(2);
        assertThat(fast.rowOf(0, 1, 1)).as("masked").isEqualTo(-1);
    }

    @Test
    void absentRanksNeitherSendNorReceive() {
        LowLatencyOracle fast = new LowLatencyOracle(HandMadeRouting.ROUTING.without(Set.of(1)));
        assertThat(fast.rows(0, 1)).containsExactly(row(0, 0, 1));
        assertThat(fast.counts(1)).containsExactly(0, 0);
        assertThat(fast.rowOf(0, 1, 0)).isEqualTo(-1);
    }

    @Test
    void trafficOfOneNode() {
        EpTopology node = new EpTopology(0, 2, 2);
        assertThat(Traffic.normal(HandMadeRouting.ROUTING, node, 0)).isEqualTo(new Traffic(2, 0));
        assertThat(Traffic.normal(HandMadeRouting.ROUTING, node, 1)).isEqualTo(new Traffic(1, 0));
        assertThat(Traffic.lowLatency(HandMadeRouting.ROUTING, node, 0))
                .isEqualTo(new Traffic(2, 0));
    }

    @Test
    void trafficOfSeveralNodes() {
        EpTopology nodes = new EpTopology(0, 2, 1);
        assertThat(Traffic.normal(HandMadeRouting.ROUTING, nodes, 0)).isEqualTo(new Traffic(0, 2));
        // Rank 0 to its neighbour 1 and to both ranks of the other node: over RDMA once, to rank 2,
        // which hands on to rank 3.
        Routing routing =
                Routing.of(
                        4,
                        3,
                        new long[][][] {{{1, 2, 3}}, {}, {}, {}},
                        new float[][][] {{{1, 1, 1}}, {}, {}, {}});
        EpTopology four = new EpTopology(0, 4, 2);
        assertThat(Traffic.normal(routing, four, 0)).isEqualTo(new Traffic(2, 1));
        assertThat(Traffic.lowLatency(routing, four, 0)).isEqualTo(new Traffic(1, 2));
        assertThat(Traffic.normal(routing, four, 0).plus(Traffic.lowLatency(routing, four, 0)))
                .isEqualTo(new Traffic(3, 3));
    }
}
