package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.math.BigDecimal;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class Ue8m0Properties {
    @Test
    void everyFiniteCodeIsAPowerOfTwoAndComesBack() {
        for (int code = 0; code < 255; code++) {
            float scale = Ue8m0.toFloat((byte) code);
            assertThat((double) scale).isEqualTo(Math.scalb(1.0, code - 127));
            assertThat(Ue8m0.fromPowerOfTwo(scale)).isEqualTo((byte) code);
        }
    }

    @Test
    void theLastCodeIsNaN() {
        assertThat(Ue8m0.toFloat((byte) 255)).isNaN();
    }

    @ParameterizedTest
    @ValueSource(
            floats = {0f, -1f, 3f, 0x1p-128f, Float.MIN_VALUE, Float.POSITIVE_INFINITY, Float.NaN})
    void refusesWhatIsNoPowerOfTwo(float scale) {
        assertThatThrownBy(() -> Ue8m0.fromPowerOfTwo(scale))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("scale=" + scale);
    }

    @Property(tries = 5000)
    void ceilPowerOfTwoIsTheSmallestNotBelow(
            @ForAll @IntRange(max = 0x7fffff) int mantissa,
            @ForAll @IntRange(min = -125, max = 126) int exponent) {
        float value = Math.scalb(1 + mantissa * 0x1p-23f, exponent);
        float power = Ue8m0.ceilPowerOfTwo(value);
        BigDecimal exact = new BigDecimal(value);
        assertThat(new BigDecimal(power)).isGreaterThanOrEqualTo(exact);
        assertThat(new BigDecimal(power / 2)).isLessThan(exact);
        assertThat(Ue8m0.toFloat(Ue8m0.fromPowerOfTwo(power))).isEqualTo(power);
    }

    @Test
    void powersOfTwoAreTheirOwnCeiling() {
        for (int exponent = -126; exponent <= 127; exponent++) {
            float power = Math.scalb(1f, exponent);
            assertThat(Ue8m0.ceilPowerOfTwo(power)).isEqualTo(power);
            if (exponent < 127) {
                assertThat(Ue8m0.ceilPowerOfTwo(Math.nextUp(power))).isEqualTo(2 * power);
            }
        }
    }
}
