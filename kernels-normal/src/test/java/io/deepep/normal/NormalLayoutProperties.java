package io.deepep.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** The buffers of normal mode, and the rings that calls make of them. */
class NormalLayoutProperties {
    record Case(Config config, NormalLimits limits, EpTopology topology) {
        NormalNvlLayout nvl() {
            return NormalNvlLayout.of(limits, topology);
        }

        NormalRdmaLayout rdma() {
            return NormalRdmaLayout.of(config, limits, topology);
        }
    }

    @Provide
    Arbitrary<Config> configs() {
        return Combinators.combine(
                        Arbitraries.integers().between(1, 40),
                        Arbitraries.integers().between(1, 64),
                        Arbitraries.integers().between(0, 200))
                .as((channels, chunk, more) -> new Config(2 * channels, chunk, 2 * chunk + more));
    }

    @Provide
    Arbitrary<Case> cases() {
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
                                Arbitraries.integers().between(1, EpTopology.MAX_NVL_RANKS))
                        .as((nodes, perNode) -> new EpTopology(0, nodes * perNode, perNode));
        return Combinators.combine(configs(), limits, topologies).as(Case::new);
    }

    @Property(tries = 200)
    void regionsFollowEachOtherOnLines(@ForAll("cases") Case c) {
        checkRegions(c.nvl().layout());
        checkRegions(c.rdma().layout());
        assertThat(c.rdma().layout().sizeBytes() > 0).isEqualTo(c.topology.isInternode());
    }

    @Example
    void ofHoweverManyChannelsEachRingHasItsFlags() {
        Config config = new Config(1 << 30, 1, 2);
        NormalRdmaLayout rdma =
                NormalRdmaLayout.of(config, NormalLimits.of(1, 8, 1, 2), new EpTopology(0, 2, 1));
        assertThat(rdma.tails().d1()).isEqualTo((long) config.numChannels() * RingShape.MOST_RINGS);
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
    void rowsAndMetadataHaveRoom(@ForAll("cases") Case c) {
        int capacity = c.limits.recvCapacity(c.topology.numRanks());
        NormalNvlLayout nvl = c.nvl();
        for (RowFormat row :
                List.of(RowFormat.bf16(c.limits.hidden()), RowFormat.fp8(c.limits.hidden()))) {
            assertThat(nvl.recvRows().of(row.strideBytes()).d0()).isGreaterThanOrEqualTo(capacity);
        }
        assertThat(nvl.combineRows().sizeBytes())
                .isEqualTo(capacity * RowFormat.bf16(c.limits.hidden()).strideBytes());
        long topkBytes = 4L * c.limits.maxTopk();
        for (Region region : List.of(nvl.recvTopk(), nvl.recvWeights(), nvl.combineWeights())) {
            assertThat(region.sizeBytes()).isEqualTo(capacity * topkBytes);
        }
        assertThat(nvl.doneFlags().recordBytes())
                .isGreaterThanOrEqualTo(8L * DoneWord.values().length);
    }

    @Property(tries = 200)
    void recordsAndHeadersHaveRoom(@ForAll("cases") Case c) {
        NormalRdmaLayout rdma = c.rdma();
        int numRanks = c.topology.numRanks();
        int expertsPerRank = Math.ceilDiv(c.limits.maxExperts(), numRanks);
        int counted = HeaderWord.HEADER_WORDS + numRanks;
        assertThat(rdma.headerBytes())
                .isGreaterThanOrEqualTo(4L * (counted + c.topology.numNvlRanks() * expertsPerRank));
        assertThat(rdma.headers().recordBytes()).isEqualTo(rdma.headerBytes());
        assertThat(rdma.records().recordBytes() % 16).isZero();
        assertThat(rdma.records().recordBytes())
                .isGreaterThanOrEqualTo(
                        4L * NormalRdmaLayout.nodeRows(c.topology) + 8L * c.limits.maxTopk());
        int perNode = c.topology.numNvlRanks();
        assertThat(NormalRdmaLayout.nodeRows(c.topology))
                .as("whole vectors of four")
                .isGreaterThanOrEqualTo(perNode)
                .isLessThan(Math.max(8, perNode) + 4)
                .matches(rows -> rows % 4 == 0);
        long row = RowFormat.fp8(c.limits.hidden()).strideBytes();
        assertThat(NormalRdmaLayout.sentBytes(c.topology, row))
                .isEqualTo(row + 4L * NormalRdmaLayout.nodeRows(c.topology));
        assertThat(NormalRdmaLayout.slotBytes(c.topology, row))
                .isGreaterThanOrEqualTo(NormalRdmaLayout.sentBytes(c.topology, row));
        boolean behind = c.topology.isInternode() || numRanks > HeaderWord.NARROW_RANKS;
        assertThat(c.nvl().headers().recordBytes())
                .isGreaterThanOrEqualTo(
                        8L * ((behind ? counted : HeaderWord.HEADER_WORDS) + expertsPerRank));
        assertThat(
                        HeaderWord.firstCount(c.topology)
                                + (behind ? numRanks : HeaderWord.NARROW_RANKS))
                .isEqualTo(HeaderWord.firstExpert(c.topology));
    }

    /** A cell of the outbox lies as far from its region's as any other. */
    @Property(tries = 200)
    void outboxHoldsWhatIsSent(@ForAll("cases") Case c) {
        NormalRdmaLayout rdma = c.rdma();
        long room = rdma.outbox().sizeBytes();
        for (Region sent :
                new Region[] {rdma.headers(), rdma.records(), rdma.slots(), rdma.endings()}) {
            assertThat(sent.end() <= room || !c.topology.isInternode()).as(sent.name()).isTrue();
        }
    }

    /** Rings never need more memory than the buffer has, and a full one can always go on. */
    @Property(tries = 500)
    void ringsFit(@ForAll("cases") Case c, @ForAll("configs") Config call) {
        Config envelope = c.config.covering(call);
        NormalRdmaLayout rdma = NormalRdmaLayout.of(envelope, c.limits, c.topology);
        int most = RingShape.mostDispatchRings(call);
        assertThat(most).as("a sending and a forwarding warp").isGreaterThanOrEqualTo(2);
        List<RingShape> shapes = new ArrayList<>();
        for (int rings = 1; rings <= most; rings++) {
            shapes.add(RingShape.ofDispatch(call, rings));
        }
        if (c.topology.isInternode()) {
            for (DType type : List.of(DType.BF16, DType.FP8_E4M3)) {
                CombineRoles roles = CombineRoles.of(call.numSms(), c.topology, type);
                shapes.add(RingShape.ofCombine(call, roles));
            }
        }
        for (RingShape rings : shapes) {
            assertThat(rings.sendChunk()).isPositive();
            assertThat(rings.numSlots())
                    .isGreaterThanOrEqualTo(2 * rings.sendChunk())
                    .isEqualTo(rings.numSlots() / rings.sendChunk() * rings.sendChunk());
            assertThat((rings.numSlots() + rings.sendChunk() + 1L) * rings.numChannels())
                    .as("rings have what the configuration gives them")
                    .isGreaterThanOrEqualTo((long) call.numChannels() * call.rdmaRecvChunk());
            long row = RowFormat.bf16(c.limits.hidden()).strideBytes();
            long slot = NormalRdmaLayout.slotBytes(c.topology, row);
            long needed = (long) rings.numChannels() * rings.numSlots() * slot;
            if (c.topology.isInternode()) {
                assertThat(needed).isLessThanOrEqualTo(rdma.slots().stride0());
                assertThat(8L * rings.numChannels())
                        .isLessThanOrEqualTo(rdma.tails().stride0())
                        .isLessThanOrEqualTo(rdma.totals().stride0());
            }
        }
    }
}
