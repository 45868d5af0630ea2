package io.deepep.testkit.oracle;

import static io.deepep.CombineFormat.BF16;
import static io.deepep.CombineFormat.FP8;
import static io.deepep.CombineFormat.LOGFMT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The combine oracles on the routing worked out by hand: they accept the right sums and nothing
 * else.
 */
class NormalCombineOracleTest {
    private final NormalDispatchCheck plain =
            NormalDispatchCheck.of(new NormalOracle(HandMadeRouting.ROUTING), List.of());

    /** Rows whose value is {@code first + row} in both channels. */
    private static Tensor rows(int count, float first) {
        Tensor x = HostTensors.allocate(DType.BF16, count, 2);
        for (int row = 0; row < count; row++) {
            x.setFloat(first + row, row, 0);
            x.setFloat(first + row, row, 1);
        }
        return x;
    }

    private static Tensor values(float... values) {
        Tensor x = HostTensors.allocate(DType.BF16, values.length, 2);
        for (int row = 0; row < values.length; row++) {
            x.setFloat(values[row], row, 0);
            x.setFloat(values[row], row, 1);
        }
        return x;
    }

    @Test
    void sumsOverRanks() {
        // Rank 0 holds (0,0) (0,2) (1,0); rank 1 holds (0,1) (0,2) (1,2).
        List<Tensor> outputs = List.of(rows(3, 1), rows(3, 10));
        NormalCombineOracle combine = NormalCombineOracle.of(plain, 2);
        combine.check(0, BF16, outputs, List.of(), values(1, 10, 2 + 11));
        combine.check(1, BF16, outputs, List.of(), values(3, 0, 12));
        combine.check(1, BF16, outputs, List.of(rows(3, 20), rows(3, 30)), values(53, 52, 66));
        assertThatThrownBy(
                        () -> combine.check(0, BF16, outputs, List.of(), values(1, 10, 13.0625f)))
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("rank 0, token 2, channel 0");
        assertThatThrownBy(
                        () -> combine.check(1, BF16, outputs, List.of(), values(3, Float.NaN, 12)))
                .isInstanceOf(OracleMismatch.class);
        assertThatThrownBy(() -> combine.check(1, BF16, outputs, List.of(), values(3, 0)))
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("combined x: expected BF16[3, 2]");
    }

    /** A result that lacks channels, or has more, of which those that are expected are right. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 3})
    void otherWidthsAreRefused(int width) {
        List<Tensor> outputs = List.of(rows(3, 1), rows(3, 10));
        NormalCombineOracle combine = NormalCombineOracle.of(plain, 2);
        Tensor right = values(1, 10, 2 + 11);
        Tensor wrong = ofWidth(right, width);
        requireMisshapen(() -> combine.check(0, BF16, outputs, List.of(), wrong));
        requireMisshapen(() -> combine.check(0, FP8, outputs, List.of(), wrong));
        List<ScaledRows> given =
                outputs.stream()
                        .map(
                                rows ->
                                        new ScaledRows(
                                                HostTensors.allocate(DType.FP8_E4M3, rows.shape()),
                                                HostTensors.allocate(DType.F32, rows.size(0), 1)))
                        .toList();
        requireMisshapen(() -> combine.checkFp8Rows(0, given, wrong));
        Tensor ofRank0 = HostTensors.f32(new float[][] {{1, 2}, {0, 3}, {4, 5}}, 2);
        Tensor ofRank1 = HostTensors.f32(new float[][] {{6, 0}, {7, 0}, {8, 9}}, 2);
        Tensor home = HostTensors.f32(new float[][] {{1, 2}, {6, 0}, {7, 3}}, 2);
        requireMisshapen(
                () -> combine.checkWeights(0, List.of(ofRank0, ofRank1), ofWidth(home, width)));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 3})
    void otherWidthsOfLowLatencySumsAreRefused(int width) {
        LowLatencyOracle fast = new LowLatencyOracle(HandMadeRouting.ROUTING);
        Tensor zeros = HostTensors.allocate(DType.BF16, 2, 6, 2);
        List<Tensor> outputs = List.of(zeros, zeros);
        Tensor wrong = HostTensors.allocate(DType.BF16, 3, width);
        for (CombineFormat format : CombineFormat.values()) {
            for (boolean preReduced : new boolean[] {false, true}) {
                LowLatencyCombineCheck check =
                        new LowLatencyCombineCheck(fast, outputs, format, preReduced);
                requireMisshapen(() -> check.check(0, wrong));
            }
        }
    }

    /** The first channels of a tensor, and zeros. */
    private static Tensor ofWidth(Tensor right, int width) {
        Tensor wrong = HostTensors.allocate(right.dtype(), right.size(0), width);
        for (int channel = 0; channel < Math.min(width, right.size(1)); channel++) {
            HostTensors.copy(right.select(1, channel), wrong.select(1, channel));
        }
        return wrong;
    }

    private static void requireMisshapen(ThrowingCallable check) {
        assertThatThrownBy(check)
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("combined ")
                .hasMessageContaining("[3, 2], saw ");
    }

    @Test
    void sumsSelectionsInTheExpandedLayout() {
        // Rank 0 without padding: (0,0,0) (0,2,1) (0,0,1) (1,0,0) (1,0,1); rank 1: (0,1,0) (1,2,0)
        // (0,2,0) (1,2,1).
        List<Tensor> outputs = List.of(rows(5, 1), rows(4, 10));
        NormalCombineOracle combine = NormalCombineOracle.of(plain.expanded(1), 2);
        combine.check(0, BF16, outputs, List.of(), values(1 + 3, 10, 2 + 12));
        combine.check(1, BF16, outputs, List.of(), values(4 + 5, 0, 11 + 13));
        assertThatThrownBy(() -> combine.check(0, BF16, outputs, List.of(), values(1, 10, 14)))
                .isInstanceOf(OracleMismatch.class);
    }

    @Test
    void weights() {
        Tensor first = HostTensors.f32(new float[][] {{1, 2}, {0, 3}, {4, 5}}, 2);
        Tensor second = HostTensors.f32(new float[][] {{6, 0}, {7, 0}, {8, 9}}, 2);
        NormalCombineOracle combine = NormalCombineOracle.of(plain, 2);
        Tensor home = HostTensors.f32(new float[][] {{1, 2}, {6, 0}, {7, 3}}, 2);
        combine.checkWeights(0, List.of(first, second), home);
        home.setFloat(7.001f, 2, 0);
        assertThatThrownBy(() -> combine.checkWeights(0, List.of(first, second), home))
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("token 2, selection 0");
        home.setFloat(7, 2, 0);
        home.setFloat(.5f, 1, 1); // masked
        assertThatThrownBy(() -> combine.checkWeights(0, List.of(first, second), home))
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("token 1, selection 1");
    }

    /** As those of ranks that give the tokens themselves back, whoever has received them. */
    @Test
    void outputsThatLieElsewhere() {
        NormalCombineOracle combine =
                NormalCombineOracle.of(plain, 2).at((source, place) -> source.token());
        List<Tensor> tokens = List.of(rows(3, 1), rows(3, 1));
        combine.check(0, BF16, tokens, List.of(), values(1, 2, 3 + 3));
        assertThatThrownBy(() -> combine.check(0, BF16, tokens, List.of(), values(1, 2, 3)))
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("rank 0, token 2, channel 0");
    }

    @Test
    void weightsThatRanksReceived() {
        NormalCombineOracle combine = NormalCombineOracle.of(plain, 2);
        Tensor home = HandMadeRouting.ROUTING.weightsTensor(0);
        for (int token = 0; token < home.size(0); token++) {
            for (int k = 0; k < home.size(1); k++) {
                if (HandMadeRouting.ROUTING.expert(0, token, k) < 0) {
                    home.setFloat(0, token, k);
                }
            }
        }
        combine.checkWeights(0, home);
        home.setFloat(7.001f, 2, 0);
        assertThatThrownBy(() -> combine.checkWeights(0, home))
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("token 2, selection 0");
    }

    @Test
    void weightedLowLatencySums() {
        LowLatencyOracle fast = new LowLatencyOracle(HandMadeRouting.ROUTING);
        Tensor first = HostTensors.allocate(DType.BF16, 2, 6, 2);
        Tensor second = HostTensors.allocate(DType.BF16, 2, 6, 2);
        HostTensors.copy(rows(6, 1), first.select(0, 0));
        HostTensors.copy(rows(6, 16), first.select(0, 1));
        HostTensors.copy(rows(6, 32), second.select(0, 0));
        HostTensors.copy(rows(6, 64), second.select(0, 1));
        List<Tensor> outputs = List.of(first, second);
        LowLatencyCombineCheck bf16 = new LowLatencyCombineCheck(fast, outputs, BF16, false);
        LowLatencyCombineCheck logFmt = new LowLatencyCombineCheck(fast, outputs, LOGFMT, false);
        // Token (0,0): expert 0 row 0, expert 1 row 0. Token (0,1): expert 2 row 0. Token (0,2):
        // expert 3 row 0, expert 0 row 1.
        float third = .75f * 64 + .125f * 2;
        bf16.check(0, values(.5f + .25f * 16, 32, third));
        assertThatThrownBy(() -> bf16.check(0, values(.5f, 32, third)))
                .isInstanceOf(OracleMismatch.class);
        Tensor near = values(4.59375f, 32.5f, third);
        logFmt.check(0, near);
        assertThatThrownBy(() -> bf16.check(0, near)).isInstanceOf(OracleMismatch.class);
        assertThatThrownBy(() -> logFmt.check(0, values(4.5f, 33, third)))
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("token 1, channel 0");
    }

    @Test
    void boundAllowsTheNearestBf16AndNotTheNext() {
        ExactRow row = new ExactRow(1);
        row.add(single(1), 0, 1);
        row.add(single(0x1p-9f), 0, 1);
        row.allowRounding();
        assertThat(row.sum(0)).isEqualTo(1 + 0x1p-9);
        assertThat(row.error(0)).isBetween(0x1p-8, 0x1p-8 * 1.001);
        row.requireNear(single(1), 0, "near");
        assertThatThrownBy(() -> row.requireNear(single(1 + 0x1p-7f), 0, "far"))
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("far, channel 0");
    }

    @Test
    void halfUlps() {
        assertThat(ExactRow.halfUlp(1)).isEqualTo(0x1p-8);
        assertThat(ExactRow.halfUlp(0.99)).isEqualTo(0x1p-9);
        assertThat(ExactRow.halfUlp(3)).isEqualTo(0x1p-7);
        assertThat(ExactRow.halfUlp(0)).as("subnormal").isEqualTo(0x1p-134);
    }

    private static Tensor single(float value) {
        Tensor x = HostTensors.allocate(DType.BF16, 1, 1);
        x.setFloat(value, 0, 0);
        return x;
    }
}
