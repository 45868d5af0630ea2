package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.FloatRange;
import org.junit.jupiter.api.Test;

class Fp8E4m3Properties {
    private static final int LARGEST = 0x7e;

    /** The value of a non-negative code, computed in binary64. */
    private static double decode(int code) {
        int exponent = code >>> 3;
        int mantissa = code & 7;
        return exponent == 0 ? mantissa * 0x1p-9 : Math.scalb(8.0 + mantissa, exponent - 10);
    }

    @Test
    void everyCodeDecodesExactlyAndComesBack() {
        for (int code = 0; code < 256; code++) {
            float value = Fp8E4m3.toFloat((byte) code);
            if ((code & 0x7f) == 0x7f) {
                assertThat(value).isNaN();
                continue;
            }
            double magnitude = decode(code & 0x7f);
            assertThat((double) value).isEqualTo(code < 128 ? magnitude : -magnitude);
            assertThat(Fp8E4m3.fromFloat(value)).isEqualTo((byte) code);
        }
        assertThat(Fp8E4m3.toFloat((byte) LARGEST)).isEqualTo(Fp8E4m3.MAX);
    }

    @Test
    void specialValues() {
        assertThat(Fp8E4m3.fromFloat(Float.NaN)).isEqualTo((byte) 0x7f);
        assertThat(Fp8E4m3.fromFloat(-0f)).isEqualTo((byte) 0x80);
        assertThat(Fp8E4m3.fromFloat(Float.POSITIVE_INFINITY)).isEqualTo((byte) 0x7e);
        assertThat(Fp8E4m3.fromFloat(Float.NEGATIVE_INFINITY)).isEqualTo((byte) 0xfe);
        assertThat(Fp8E4m3.fromFloat(464f)).isEqualTo((byte) 0x7e);
        assertThat(Fp8E4m3.fromFloat(-1e30f)).isEqualTo((byte) 0xfe);
        assertThat(Fp8E4m3.fromFloat(0x1p-10f)).as("tie to zero").isEqualTo((byte) 0);
        assertThat(Fp8E4m3.fromFloat(Math.nextUp(0x1p-10f))).isEqualTo((byte) 1);
        assertThat(Fp8E4m3.fromFloat(Float.MIN_VALUE)).isEqualTo((byte) 0);
    }

    @Test
    void everyMidpointAndItsNeighbours() {
        for (int code = 0; code < LARGEST; code++) {
            float middle = (float) ((decode(code) + decode(code + 1)) / 2);
            int even = code % 2 == 0 ? code : code + 1;
            assertThat(Fp8E4m3.fromFloat(middle)).isEqualTo((byte) even);
            assertThat(Fp8E4m3.fromFloat(-middle)).isEqualTo((byte) (even | 0x80));
            assertThat(Fp8E4m3.fromFloat(Math.nextDown(middle))).isEqualTo((byte) code);
            assertThat(Fp8E4m3.fromFloat(Math.nextUp(middle))).isEqualTo((byte) (code + 1));
        }
    }

    @Test
    void everyBf16() {
        for (int bits = 0; bits < 0x7f80; bits++) {
            requireNearest(Bf16.toFloat((short) bits));
            requireNearest(Bf16.toFloat((short) (bits | 0x8000)));
        }
    }

    @Property(tries = 5000)
    void roundsToNearest(@ForAll @FloatRange(min = -500, max = 500) float value) {
        requireNearest(value);
    }

    private static void requireNearest(float value) {
        int code = Fp8E4m3.fromFloat(value) & 0xff;
        assertThat(code >>> 7).isEqualTo(Float.floatToRawIntBits(value) >>> 31);
        double magnitude = Math.min(Math.abs((double) value), Fp8E4m3.MAX);
        double distance = Math.abs(decode(code & 0x7f) - magnitude);
        for (int other = 0; other <= LARGEST; other++) {
            assertThat(Math.abs(decode(other) - magnitude)).isGreaterThanOrEqualTo(distance);
        }
    }

    @Test
    void quantizeRefusesShapesThatDoNotFit() {
        Tensor rows = tensor(DType.BF16, 2, 256);
        Tensor codes = tensor(DType.FP8_E4M3, 2, 256);
        Tensor scales = tensor(DType.F32, 2, 2);
        Fp8E4m3.quantize(rows, codes, scales);
        requireRefused(tensor(DType.BF16, 512), codes, scales);
        requireRefused(tensor(DType.BF16, 3, 256), codes, scales);
        requireRefused(tensor(DType.BF16, 2, 320), tensor(DType.FP8_E4M3, 2, 320), scales);
        requireRefused(rows, rows, scales);
        requireRefused(rows, tensor(DType.FP8_E4M3, 2, 128), scales);
        requireRefused(rows, codes, tensor(DType.I32, 2, 2));
        requireRefused(rows, codes, tensor(DType.F32, 2, 1));
    }

    private static Tensor tensor(DType dtype, long... shape) {
        return Tensor.allocate(Arena.ofAuto(), dtype, shape);
    }

    private static void requireRefused(Tensor rows, Tensor codes, Tensor scales) {
        assertThatThrownBy(() -> Fp8E4m3.quantize(rows, codes, scales))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(
                        "rows=%s, codes=%s, scales=%s do not match".formatted(rows, codes, scales));
    }
}
