package io.deepep.normal.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.normal.HeaderWord;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** The RDMA buffer of the CUDA backend, and the rings that calls make of it. */
class InternodeLayoutProperties {
    record Case(Config config, NormalLimits limits, EpTopology topology) {}

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
                                Arbitraries.integers().between(1, 1024))
                        .as(
                                (tokens, hidden, topk, experts) ->
                                        NormalLimits.of(tokens, 8 * hidden, topk, experts));
        Arbitrary<EpTopology> topologies =
                Combinators.combine(
                                Arbitraries.integers().between(1, 20),
                                Arbitraries.integers().between(1, 8))
                        .as((nodes, perNode) -> new EpTopology(0, nodes * perNode, perNode));
        return Combinators.combine(configs(), limits, topologies).as(Case::new);
    }

    @Property(tries = 200)
    void regionsFollowEachOther(@ForAll("cases") Case c) {
        Layout layout = CudaRdmaLayout.of(c.config, c.limits, c.topology).layout();
        long end = 0;
        for (Region region : layout.regions()) {
            assertThat(region.offset()).as(region.name()).isGreaterThanOrEqualTo(end);
            assertThat(region.offset() % Layout.LINE_BYTES).as(region.name()).isZero();
            end = region.end();
        }
        assertThat(layout.sizeBytes()).isEqualTo(Layout.alignToLine(end));
        assertThat(layout.sizeBytes() > 0).isEqualTo(c.topology.isInternode());
    }

    /** A cell of the outbox lies as far from its region's as any other. */
    @Property(tries = 200)
    void outboxHoldsWhatIsSent(@ForAll("cases") Case c) {
        CudaRdmaLayout rdma = CudaRdmaLayout.of(c.config, c.limits, c.topology);
        long room = rdma.outbox().sizeBytes();
        for (Region sent :
                new Region[] {rdma.headers(), rdma.records(), rdma.slots(), rdma.endings()}) {
            assertThat(sent.end() <= room || !c.topology.isInternode()).as(sent.name()).isTrue();
        }
    }

    @Property(tries = 200)
    void recordsAndHeadersHaveRoom(@ForAll("cases") Case c) {
        CudaRdmaLayout rdma = CudaRdmaLayout.of(c.config, c.limits, c.topology);
        int expertsPerRank = Math.ceilDiv(c.limits.maxExperts(), c.topology.numRanks());
        assertThat(rdma.headerBytes())
                .isGreaterThanOrEqualTo(
                        4L
                                * (HeaderWord.HEADER_WORDS
                                        + c.topology.numRanks()
                                        + c.topology.numNvlRanks() * expertsPerRank));
        assertThat(rdma.headers().recordBytes()).isEqualTo(rdma.headerBytes());
        assertThat(rdma.records().recordBytes() % 16).isZero();
        assertThat(rdma.records().recordBytes())
                .isGreaterThanOrEqualTo(KernelConstants.NODE_ROWS_BYTES + 8L * c.limits.maxTopk());
        CudaNvlLayout nvl = CudaNvlLayout.of(c.limits, c.topology);
        int counts = c.topology.isInternode() ? c.topology.numRanks() : 0;
        assertThat(nvl.headers().recordBytes())
                .isGreaterThanOrEqualTo(8L * (HeaderWord.HEADER_WORDS + counts + expertsPerRank));
    }

    /** Rings never need more memory than the buffer has, and a full one can always go on. */
    @Property(tries = 500)
    void ringsFit(@ForAll("cases") Case c, @ForAll("configs") Config call) {
        Config envelope = c.config.covering(call);
        CudaRdmaLayout rdma = CudaRdmaLayout.of(envelope, c.limits, c.topology);
        int most = Math.min(CudaRdmaLayout.MAX_COPY_WARPS, RingShape.mostWarps(call));
        assertThat(most).isPositive();
        List<RingShape> shapes = new ArrayList<>();
        for (int warps = 1; warps <= most; warps++) {
            shapes.add(RingShape.ofDispatch(call, warps));
        }
        if (c.topology.isInternode()) {
            shapes.add(RingShape.ofCombine(call, CombineRoles.of(call.numSms(), c.topology)));
        }
        for (RingShape rings : shapes) {
            assertThat(rings.sendChunk()).isPositive();
            assertThat(rings.numSlots())
                    .isGreaterThanOrEqualTo(2 * rings.sendChunk())
                    .isEqualTo(rings.numSlots() / rings.sendChunk() * rings.sendChunk());
            long row = RowFormat.bf16(c.limits.hidden()).strideBytes();
            long needed = (long) rings.numChannels() * rings.numSlots() * row;
            if (c.topology.isInternode()) {
                assertThat(needed).isLessThanOrEqualTo(rdma.slots().stride0());
                assertThat(8L * rings.numChannels()).isLessThanOrEqualTo(rdma.tails().stride0());
            }
        }
    }
}
