package io.deepep.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class LowLatencyLayoutProperties {
    @Property(tries = 200)
    void regionsAreAlignedAndDoNotOverlap(
            @ForAll @IntRange(min = 1, max = 1024) int maxTokens,
            @ForAll @IntRange(min = 1, max = 80) int hiddenGroups,
            @ForAll @IntRange(min = 1, max = 40) int numRanks,
            @ForAll @IntRange(min = 1, max = 64) int localExperts,
            @ForAll @IntRange(min = 1, max = 32) int maxTopk) {
        var limits =
                new LowLatencyLimits(
                        maxTokens, 128 * hiddenGroups, numRanks * localExperts, maxTopk);
        LowLatencyLayout layout = LowLatencyLayout.of(limits, new EpTopology(0, numRanks, 1));
        long end = 0;
        for (Region region : layout.layout().regions()) {
            assertThat(region.offset())
                    .isGreaterThanOrEqualTo(end)
                    .isEqualTo(Layout.alignToLine(end));
            end = region.end();
        }
        assertThat(layout.layout().sizeBytes()).isEqualTo(Layout.alignToLine(end));
        // Rows start on lines, hold BF16 or FP8 with its scales, and leave room for the selection.
        assertThat(layout.dispatchRows().recordBytes() % Layout.LINE_BYTES).isZero();
        assertThat(layout.selectionOffset()).isGreaterThanOrEqualTo(2L * limits.hidden());
        assertThat(layout.dispatchRows().recordBytes())
                .isGreaterThanOrEqualTo(layout.selectionOffset() + 4 + 4L * maxTopk);
        assertThat(layout.combineRows().recordBytes())
                .isGreaterThanOrEqualTo(LogFmt10.rowBytes(limits.hidden()));
    }
}
