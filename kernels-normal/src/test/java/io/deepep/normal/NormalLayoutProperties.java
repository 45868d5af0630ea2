package io.deepep.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

class NormalLayoutProperties {
    record Case(Config config, NormalLimits limits, EpTopology topology) {}

    @Provide
    Arbitrary<Case> cases() {
        Arbitrary<Config> configs =
                Combinators.combine(
                                Arbitraries.integers().between(1, 40),
                                Arbitraries.integers().between(1, 64),
                                Arbitraries.integers().between(0, 200))
                        .as(
                                (channels, chunk, more) ->
                                        new Config(2 * channels, chunk, 2 * chunk + more));
        Arbitrary<NormalLimits> limits =
                Combinators.combine(
                                Arbitraries.integers().between(1, 5000),
                                Arbitraries.integers().between(1, 2048),
                                Arbitraries.integers().between(1, 32),
                                Arbitraries.integers().between(1, 1024),
                                Arbitraries.integers().between(0, 100_000))
                        .as(
                                (tokens, hidden, topk, experts, recv) ->
                                        new NormalLimits(tokens, 8 * hidden, topk, experts, recv));
        Arbitrary<EpTopology> topologies =
                Combinators.combine(
                                Arbitraries.integers().between(1, 20),
                                Arbitraries.integers().between(1, 8))
                        .as((nodes, perNode) -> new EpTopology(0, nodes * perNode, perNode));
        return Combinators.combine(configs, limits, topologies).as(Case::new);
    }

    @Property(tries = 200)
    void regionsFollowEachOtherOnLines(@ForAll("cases") Case c) {
        checkRegions(NormalNvlLayout.of(c.config, c.limits, c.topology).layout());
        checkRegions(NormalRdmaLayout.of(c.config, c.limits, c.topology).layout());
    }

    private static void checkRegions(Layout layout) {
        long end = 0;
        for (Region region : layout.regions()) {
            assertThat(region.offset()).as(region.name()).isGreaterThanOrEqualTo(end);
            assertThat(region.offset() % Layout.LINE_BYTES).as(region.name()).isZero();
            end = region.end();
        }
        assertThat(layout.sizeBytes()).isEqualTo(Layout.alignToLine(end));
    }

    @Property(tries = 200)
    void rowsAndSlotsHaveRoomForWhatIsWritten(@ForAll("cases") Case c) {
        NormalNvlLayout nvl = NormalNvlLayout.of(c.config, c.limits, c.topology);
        NormalRdmaLayout rdma = NormalRdmaLayout.of(c.config, c.limits, c.topology);
        for (DType dtype : new DType[] {DType.BF16, DType.FP8_E4M3}) {
            long bytes = new RowFormat(dtype, c.limits.hidden()).dataBytes();
            assertThat(nvl.dispatchRows().recordBytes()).isGreaterThanOrEqualTo(bytes);
            assertThat(rdma.slotMetaOffset()).isGreaterThanOrEqualTo(bytes);
        }
        assertThat(nvl.dispatchRows().recordBytes() % Layout.LINE_BYTES).isZero();
        assertThat(nvl.combineRows().recordBytes() % Layout.LINE_BYTES).isZero();
        assertThat(rdma.dispatchRing().recordBytes())
                .isGreaterThanOrEqualTo(
                        rdma.slotMetaOffset() + 4 + NormalNvlLayout.metaBytes(c.limits.maxTopk()));
        assertThat(rdma.combineRing().recordBytes())
                .isGreaterThanOrEqualTo(rdma.slotMetaOffset() + 4L * c.limits.maxTopk());
        assertThat(nvl.headers().recordBytes())
                .isGreaterThanOrEqualTo(
                        NormalHeader.selectionsOffset(
                                c.topology.numRanks(), c.limits.maxExperts()));
    }

    @Property(tries = 200)
    void hintsFollowFromTheLimits(@ForAll("cases") Case c) {
        long capacity = c.limits.recvCapacity(c.topology.numRanks());
        NormalNvlLayout nvl = NormalNvlLayout.of(c.config, c.limits, c.topology);
        assertThat(nvl.dispatchRows().sizeBytes())
                .isEqualTo(capacity * nvl.dispatchRows().recordBytes());
        assertThat(nvl.layout().sizeBytes()).isGreaterThan(2 * capacity * 2L * c.limits.hidden());
        long rdma = NormalRdmaLayout.of(c.config, c.limits, c.topology).layout().sizeBytes();
        if (c.topology.isInternode()) {
            long slots =
                    (long) c.config.numChannels()
                            * c.topology.numRdmaRanks()
                            * c.config.rdmaRecvChunk();
            assertThat(rdma).isGreaterThan(2 * slots * 2L * c.limits.hidden());
        } else {
            assertThat(rdma).isZero();
        }
    }
}
