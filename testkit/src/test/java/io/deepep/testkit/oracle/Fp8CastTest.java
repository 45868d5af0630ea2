package io.deepep.testkit.oracle;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class Fp8CastTest {
    /** Values and, from the table of E4M3, the nearest codes. */
    @ParameterizedTest
    @CsvSource({
        "0, 0x00",
        "1, 0x38",
        "1.125, 0x39",
        "17, 0x58",
        "19, 0x5a",
        "448, 0x7e",
        "449, 0x7e",
        "1e30, 0x7e",
        "0.015625, 0x08",
        "0.001953125, 0x01",
        "0.0009765625, 0x00",
        "0.00293, 0x02"
    })
    void nearest(float value, String code) {
        int expected = Integer.decode(code);
        assertThat(Fp8Cast.nearest(value)).isEqualTo((byte) expected);
        assertThat(Fp8Cast.nearest(-value)).isEqualTo((byte) (expected | 0x80));
    }

    @Test
    void valuesOfCodes() {
        assertThat(Fp8Cast.value((byte) 0x38)).isEqualTo(1);
        assertThat(Fp8Cast.value((byte) 0xb9)).isEqualTo(-1.125);
        assertThat(Fp8Cast.value((byte) 0x01)).isEqualTo(0x1p-9);
        assertThat(Fp8Cast.value((byte) 0x7e)).isEqualTo(448);
        assertThat(Fp8Cast.value((byte) 0x7f)).isNaN();
    }

    /** Five groups with largest magnitudes 448, 450, 0, 7 and 3.5. */
    private static Tensor row() {
        Tensor x = HostTensors.allocate(DType.BF16, 1, 5 * Fp8Cast.GROUP);
        x.setFloat(-448, 0, 5);
        x.setFloat(1, 0, 6);
        x.setFloat(450, 0, 130);
        x.setFloat(7, 0, 3 * 128);
        x.setFloat(3.5f, 0, 4 * 128 + 127);
        return x;
    }

    @Test
    void powerOfTwoScales() {
        Fp8Cast cast = Fp8Cast.of(row(), 0, LowLatencyFormat.FP8_POWER_OF_TWO);
        assertThat(cast.scales()).containsExactly(1f, 2f, 0x1p-22f, 0x1p-6f, 0x1p-7f);
        assertThat(cast.codes()[5]).isEqualTo((byte) 0xfe);
        assertThat(cast.codes()[6]).isEqualTo((byte) 0x38);
        assertThat(Fp8Cast.value(cast.codes()[130])).isEqualTo(224);
        assertThat(Fp8Cast.value(cast.codes()[3 * 128])).isEqualTo(448);
        assertThat(cast.codes()[256]).isZero();
    }

    @Test
    void packedScales() {
        Fp8Cast cast = Fp8Cast.of(row(), 0, LowLatencyFormat.FP8_UE8M0);
        assertThat(cast.packedScales())
                .containsExactly(127 | 128 << 8 | 105 << 16 | 121 << 24, 120);
    }

    @Test
    void plainScalesReachTheLargestCode() {
        Fp8Cast cast = Fp8Cast.of(row(), 0, LowLatencyFormat.FP8);
        float[] scales = cast.scales();
        assertThat(scales[1]).isEqualTo(450 * (1f / 448f));
        assertThat(scales[2]).isEqualTo(1e-4f * (1f / 448f));
        assertThat(Fp8Cast.value(cast.codes()[5])).isEqualTo(-448);
        assertThat(Fp8Cast.value(cast.codes()[130])).isEqualTo(448);
        assertThat(Fp8Cast.value(cast.codes()[4 * 128 + 127])).isEqualTo(448);
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "1.0000001, 2", "0.75, 1", "0.5, 0.5", "3, 4", "448, 512"})
    void powersOfTwo(double value, float power) {
        assertThat(Fp8Cast.powerOfTwoNotBelow(value)).isEqualTo(power);
    }
}
