package io.deepep.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.deepep.CombineFormat;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import java.util.List;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class LowLatencyLayoutProperties {
    @Property(tries = 200)
    void regionsAreAlignedAndDoNotOverlap(
            @ForAll @IntRange(min = 1, max = 1024) int maxTokens,
            @ForAll @IntRange(min = 1, max = 80) int hiddenGroups,
            @ForAll @IntRange(min = 1, max = 4) int nodes,
            @ForAll @IntRange(min = 1, max = 12) int ranksPerNode,
            @ForAll @IntRange(min = 1, max = 64) int localExperts,
            @ForAll @IntRange(min = 1, max = 32) int maxTopk) {
        int numRanks = nodes * ranksPerNode;
        var limits =
                new LowLatencyLimits(
                        maxTokens, 128 * hiddenGroups, maxTopk, numRanks * localExperts);
        int hidden = limits.hidden();
        LowLatencyLayout layout =
                LowLatencyLayout.of(limits, new EpTopology(0, numRanks, ranksPerNode));
        long end = 0;
        for (Region region : layout.layout().regions()) {
            assertThat(region.offset())
                    .isGreaterThanOrEqualTo(end)
                    .isEqualTo(Layout.alignToLine(end));
            end = region.end();
        }
        assertThat(layout.layout().sizeBytes()).isEqualTo(Layout.alignToLine(end));
        // Rows start on lines, hold BF16 or FP8 with its scales, selections and weights.
        assertThat(layout.dispatchRows().recordBytes() % Layout.LINE_BYTES).isZero();
        for (RowFormat rows : List.of(RowFormat.bf16(hidden), RowFormat.fp8(hidden))) {
            assertThat(layout.dispatchRows().recordBytes())
                    .isGreaterThanOrEqualTo(rows.weightsOffset(maxTopk) + 4L * maxTopk);
            assertThat(layout.dispatchRow(0, 0, 0, rows, maxTopk))
                    .isEqualTo(layout.dispatchRows().offset());
            long last = layout.dispatchRow(1, numRanks - 1, maxTokens - 1, rows, maxTopk);
            assertThat(last).isGreaterThanOrEqualTo(layout.dispatchRows().at(1, numRanks - 1, 0));
            assertThat(last % Layout.LINE_BYTES).isZero();
            assertThat(last + rows.strideBytes(maxTopk))
                    .isLessThanOrEqualTo(layout.dispatchRows().end());
        }
        for (CombineFormat format : CombineFormat.values()) {
            assertThat(LowLatencyLayout.combineRowStride(format, hidden) % Layout.LINE_BYTES)
                    .isZero();
            assertThat(LowLatencyLayout.combineRowStride(format, hidden))
                    .isBetween((long) hidden, layout.combineRows().recordBytes());
        }
        // Packs hold a row, 12 bytes in 16, and are zero before the first call.
        assertThat(layout.combinePacks().recordBytes()).isGreaterThanOrEqualTo(2L * hidden * 4 / 3);
        assertThat(layout.combinePacks().end()).isLessThanOrEqualTo(layout.headersEnd());
        boolean smallNode = nodes == 1 && ranksPerNode <= 8;
        assertThat(layout.combinePacks().stride1() / layout.combinePacks().recordBytes())
                .isEqualTo(
                        smallNode
                                ? Math.max(
                                        Math.min(maxTokens, LowLatencyLayout.PACKED_TOKENS)
                                                * (long) maxTopk,
                                        Math.min(maxTokens, LowLatencyLayout.PACKED_SUMS))
                                : 0);
        // A network sets 64 bits at once.
        assertThat(layout.flagBytes()).isEqualTo(smallNode ? 4 : 8);
        requirePlacesInRegions(layout, limits, numRanks);
    }

    /** The first and the last of what regions hold are at their ends. */
    private static void requirePlacesInRegions(
            LowLatencyLayout layout, LowLatencyLimits limits, int numRanks) {
        int rank = numRanks - 1, token = limits.maxTokens() - 1, maxTopk = limits.maxTopk();
        assertThat(layout.ack(0, Kind.DISPATCH)).isEqualTo(layout.acks().offset());
        assertThat(layout.ack(rank, Kind.COMBINE) + 8).isEqualTo(layout.acks().end());
        assertThat(layout.ack(0, Kind.COMBINE) - layout.ack(0, Kind.DISPATCH)).isEqualTo(8);

        int words = LowLatencyLayout.dispatchWords(limits, numRanks);
        assertThat(words)
                .isGreaterThanOrEqualTo(DispatchWord.COUNT + limits.numLocalExperts(numRanks))
                .isEven();
        for (Kind kind : Kind.values()) {
            int last = kind == Kind.DISPATCH ? words - 1 : CombineWord.COUNT - 1;
            Region headers = layout.headers(kind);
            assertThat(layout.word(kind, 0, 0, 0)).isEqualTo(headers.offset());
            assertThat(layout.word(kind, 1, rank, last) + 8)
                    .isBetween(headers.end() - Layout.LINE_BYTES, headers.end());
        }

        // A vector for each selection.
        assertThat(LowLatencyLayout.dispatchFlagBytes(maxTopk)).isEqualTo(16L * maxTopk);
        assertThat(layout.dispatchFlag(0, 0, 0, maxTopk))
                .isEqualTo(layout.dispatchFlags().offset());
        assertThat(
                        layout.dispatchFlag(1, rank, token, maxTopk)
                                + LowLatencyLayout.dispatchFlagBytes(maxTopk))
                .isEqualTo(layout.dispatchFlags().end());

        // Every part of every source's row has a flag of its own.
        assertThat(layout.combineFlag(0, 0, 0, 0, 0)).isEqualTo(layout.combineFlags().offset());
        assertThat(
                        layout.combineFlag(
                                        1,
                                        token,
                                        LowLatencyLayout.numParts(limits.hidden()) - 1,
                                        rank,
                                        maxTopk - 1)
                                + layout.flagBytes())
                .isEqualTo(layout.combineFlags().end());

        assertThat(layout.combineRow(0, 0, 0, 0)).isEqualTo(layout.combineRows().offset());
        assertThat(
                        layout.combineRow(1, rank, token, maxTopk - 1)
                                + RowFormat.bf16(limits.hidden()).strideBytes())
                .isEqualTo(layout.combineRows().end());
    }

    /** The field's standard shape on one node of eight: 128 tokens, 256 experts. */
    @Example
    void symmetricMemoryOfTheStandardShape() {
        LowLatencyLimits limits = new LowLatencyLimits(128, 7168, 8, 256);
        LowLatencyLayout layout = LowLatencyLayout.of(limits, new EpTopology(0, 8, 8));
        assertThat(layout.layout().sizeBytes()).isBetween(304_000_000L, 306_000_000L);
    }

    /** Kernels have 32 bits for a place among the rows of a combine, in units of 8 bytes. */
    @Example
    void rowsWhosePlacesKernelsCannotCountAreRefused() {
        int tokens = LowLatencyLimits.MAX_TOKENS, topk = 32, hidden = 16384; // 2^30 bytes a rank
        LowLatencyLimits ofFew = new LowLatencyLimits(tokens, hidden, topk, 31);
        LowLatencyLayout layout = LowLatencyLayout.of(ofFew, new EpTopology(0, 31, 1));
        assertThat(layout.combineRows().stride0()).isLessThan(8L << 32);
        LowLatencyLimits ofMany = new LowLatencyLimits(tokens, hidden, topk, 33);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LowLatencyLayout.of(ofMany, new EpTopology(0, 33, 1)))
                .withMessageContaining("lower maxTokens or maxTopk");
    }
}
