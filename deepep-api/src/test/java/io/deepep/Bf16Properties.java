package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

class Bf16Properties {
    private static final int INFINITY = 0x7f80;
    private static final BigDecimal TWO = BigDecimal.valueOf(2);

    /** The value from sign, exponent and mantissa, computed in binary64, which holds every BF16. */
    private static double decode(int bits) {
        int exponent = (bits >>> 7) & 0xff;
        int mantissa = bits & 0x7f;
        double magnitude =
                exponent == 0
                        ? Math.scalb((double) mantissa, -133)
                        : Math.scalb((double) (128 + mantissa), exponent - 134);
        return (bits & 0x8000) == 0 ? magnitude : -magnitude;
    }

    @Test
    void everyPatternDecodesExactlyAndComesBack() {
        for (int bits = 0; bits < 0x10000; bits++) {
            float value = Bf16.toFloat((short) bits);
            int magnitude = bits & 0x7fff;
            if (magnitude > INFINITY) {
                assertThat(value).isNaN();
                assertThat(Bf16.fromFloat(value)).isEqualTo((short) 0x7fff);
                continue;
            }
            if (magnitude == INFINITY) {
                assertThat(value).isInfinite();
            } else {
                assertThat((double) value).isEqualTo(decode(bits));
            }
            assertThat(Bf16.fromFloat(value)).isEqualTo((short) bits);
        }
    }

    @Property(tries = 5000)
    void roundsToNearestTiesToEven(@ForAll int floatBits) {
        requireNearest(Float.intBitsToFloat(floatBits));
    }

    /** The float in the middle between neighbours, and those on either side of it. */
    @Test
    void everyMidpointAndItsNeighbours() {
        for (int bits = 0; bits < INFINITY; bits++) {
            float middle = Float.intBitsToFloat((bits << 16) | 0x8000);
            requireNearest(middle);
            requireNearest(-middle);
            requireNearest(Math.nextUp(middle));
            requireNearest(Math.nextDown(middle));
        }
    }

    private static void requireNearest(float value) {
        int rounded = Bf16.fromFloat(value) & 0xffff;
        if (Float.isNaN(value)) {
            assertThat(rounded).isEqualTo(0x7fff);
            return;
        }
        assertThat(rounded >>> 15).isEqualTo(Float.floatToRawIntBits(value) >>> 31);
        int magnitude = rounded & 0x7fff;
        if (Float.isInfinite(value)) {
            assertThat(magnitude).isEqualTo(INFINITY);
            return;
        }
        BigDecimal exact = new BigDecimal(Math.abs((double) value));
        if (magnitude < INFINITY) {
            // Not above the middle to the next, and on it only if even.
            int up = exact.multiply(TWO).compareTo(big(magnitude).add(big(magnitude + 1)));
            assertThat(up < 0 || (up == 0 && magnitude % 2 == 0)).as("%s", value).isTrue();
        }
        if (magnitude > 0) {
            int down = exact.multiply(TWO).compareTo(big(magnitude).add(big(magnitude - 1)));
            assertThat(down > 0 || (down == 0 && magnitude % 2 == 0)).as("%s", value).isTrue();
        }
    }

    /** Infinity stands for the power of two that would follow, as rounding sees it. */
    private static BigDecimal big(int magnitude) {
        return new BigDecimal(magnitude == INFINITY ? 0x1p128 : decode(magnitude));
    }
}
