package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class LayoutProperties {
    /** The numbers of one region. */
    record Spec(long recordBytes, long d0, long d1, long d2) {
        Region appendTo(Layout.Builder builder, int number) {
            return builder.region("region" + number, recordBytes, d0, d1, d2);
        }
    }

    @Provide
    Arbitrary<List<Spec>> specs() {
        Arbitrary<Long> extents = Arbitraries.longs().between(0, 5);
        Arbitrary<Long> bytes = Arbitraries.longs().between(1, 1000);
        return Combinators.combine(bytes, extents, extents, extents)
                .as(Spec::new)
                .list()
                .ofMaxSize(8);
    }

    private static Layout build(List<Spec> specs) {
        Layout.Builder builder = Layout.builder("test");
        for (int i = 0; i < specs.size(); i++) {
            specs.get(i).appendTo(builder, i);
        }
        return builder.build();
    }

    @Property
    void regionsAreAlignedAndDisjointAndTheTotalHoldsThem(@ForAll("specs") List<Spec> specs) {
        Layout layout = build(specs);
        long end = 0;
        for (Region region : layout.regions()) {
            assertThat(region.offset() % Layout.LINE_BYTES).isZero();
            assertThat(region.offset()).isGreaterThanOrEqualTo(end);
            assertThat(region.offset() - end).isLessThan(Layout.LINE_BYTES);
            end = region.end();
        }
        assertThat(layout.sizeBytes()).isEqualTo(Layout.alignToLine(end));
        assertThat(layout.regions()).hasSameSizeAs(specs);
    }

    @Property
    void recordsFillTheirRegionWithoutOverlap(@ForAll("specs") List<Spec> specs) {
        Layout layout = build(specs);
        for (int i = 0; i < specs.size(); i++) {
            Spec spec = specs.get(i);
            Region region = layout.regions().get(i);
            List<Long> offsets = new ArrayList<>();
            for (long a = 0; a < spec.d0(); a++) {
                for (long b = 0; b < spec.d1(); b++) {
                    for (long c = 0; c < spec.d2(); c++) {
                        offsets.add(region.at(a, b, c));
                    }
                }
            }
            for (int n = 0; n < offsets.size(); n++) {
                assertThat(offsets.get(n)).isEqualTo(region.offset() + n * spec.recordBytes());
            }
            assertThat(region.end())
                    .isEqualTo(region.offset() + offsets.size() * spec.recordBytes());
        }
    }

    @Property
    void anyDifferenceChangesTheHash(
            @ForAll("specs") List<Spec> specs, @ForAll("specs") List<Spec> others) {
        assertThat(build(specs).hash()).isEqualTo(build(specs).hash());
        Layout layout = build(specs);
        Layout other = build(others);
        if (!numbers(layout).equals(numbers(other))) {
            assertThat(layout.hash()).isNotEqualTo(other.hash());
        }
    }

    /** What ranks and binaries must agree on: extents of empty regions do not matter. */
    private static List<List<Long>> numbers(Layout layout) {
        return layout.regions().stream()
                .map(
                        r ->
                                List.of(
                                        r.offset(),
                                        r.recordBytes(),
                                        r.stride0(),
                                        r.stride1(),
                                        r.sizeBytes()))
                .toList();
    }

    @Test
    void offsetsBeyond32Bits() {
        Layout.Builder builder = Layout.builder("large");
        builder.region("first", 1L << 20, 1 << 12);
        Region second = builder.region("second", 7168, 1 << 10, 1 << 10);
        assertThat(second.offset()).isEqualTo(1L << 32);
        assertThat(second.at(1023, 1023)).isEqualTo((1L << 32) + 7168L * ((1 << 20) - 1));
        assertThat(builder.build().sizeBytes()).isEqualTo((1L << 32) + (7168L << 20));
    }

    @Test
    void refusesOverflowAndIndicesOutOfRange() {
        Layout.Builder builder = Layout.builder("test");
        requireTooLarge(() -> builder.region("huge", Long.MAX_VALUE / 2, 3));
        requireTooLarge(() -> builder.region("huge", -8, 1));
        requireTooLarge(() -> builder.region("huge", -8, -1));
        Region region = builder.region("small", 4, 2, 3);
        assertThat(region.d0()).isEqualTo(2);
        assertThatThrownBy(() -> region.at(2)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> region.at(0, 3)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> region.at(0, 0, 1)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> region.at(-1)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    private static void requireTooLarge(ThrowingCallable region) {
        assertThatThrownBy(region)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "the limits of the buffer are too large: no memory can hold the region huge of test; lower"
                                + " them");
    }
}
