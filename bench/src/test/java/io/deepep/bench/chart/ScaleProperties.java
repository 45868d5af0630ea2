package io.deepep.bench.chart;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** Axes hold all values, and have few and round marks. */
final class ScaleProperties {
    private static final double ROUNDING = 1e-6;

    @Property(tries = 200)
    void anAxisFromZero(
            @ForAll @IntRange(min = 1) int thousandths,
            @ForAll @IntRange(min = 2, max = 10) int numSteps) {
        double most = thousandths / 1e3;
        Scale scale = Scale.upTo(most, numSteps, 20, 120);
        List<Double> ticks = scale.ticks();
        assertThat(ticks).hasSizeBetween(2, numSteps + 1).isSorted();
        assertThat(ticks.getFirst()).isZero();
        assertThat(ticks.getLast()).isGreaterThanOrEqualTo(most * (1 - ROUNDING));
        double step = ticks.get(1);
        // Without the last step, it would be too short.
        assertThat(ticks.getLast() - step).isLessThan(most);
        double digit = step / Math.pow(10, Math.floor(Math.log10(step) + ROUNDING));
        assertThat(List.of(1.0, 2.0, 5.0)).anyMatch(each -> Math.abs(each - digit) < ROUNDING);
        assertThat(scale.at(0)).isEqualTo(20);
        assertThat(scale.at(ticks.getLast() / 2)).isCloseTo(70, within(ROUNDING));
    }

    /** As of experts without tokens. */
    @Example
    void anAxisOfNothing() {
        Scale scale = Scale.upTo(0, 4, 20, 120);
        assertThat(scale.ticks()).startsWith(0.0).endsWith(1.0);
        assertThat(scale.at(0)).isEqualTo(20);
    }

    @Property(tries = 200)
    void aLogarithmicAxis(
            @ForAll @IntRange(min = 1) int thousandths,
            @ForAll @IntRange(min = 1) int ratio,
            @ForAll @IntRange(min = 2, max = 10) int base) {
        double least = thousandths / 1e3;
        Scale scale = Scale.logarithmic(least, least * ratio, base, 120, 20);
        List<Double> powers = scale.ticks();
        assertThat(powers).hasSizeGreaterThan(1);
        assertThat(powers.getFirst()).isBetween(least / base, least * (1 + ROUNDING));
        assertThat(powers.getLast()).isGreaterThanOrEqualTo(least * ratio * (1 - ROUNDING));
        for (int i = 0; i < powers.size(); i++) {
            double exponent = Math.log(powers.get(i)) / Math.log(base);
            assertThat(exponent).isCloseTo(Math.rint(exponent), within(ROUNDING));
            assertThat(scale.at(powers.get(i)))
                    .isCloseTo(120 - 100.0 * i / (powers.size() - 1), within(ROUNDING));
        }
    }

    @Example
    void numbersHaveThreeDigits() {
        assertThat(List.of(0.0, 1234.4, 1e6, 99.96, 12.34, 0.5, 0.01234, -7.0, 1e-9))
                .extracting(Scale::number)
                .containsExactly(
                        "0", "1,234", "1,000,000", "100", "12.3", "0.5", "0.0123", "-7", "0");
    }
}
