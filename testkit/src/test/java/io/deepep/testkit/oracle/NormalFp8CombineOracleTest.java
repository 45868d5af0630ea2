package io.deepep.testkit.oracle;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.routing.Routing;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * What is accepted of a combine in FP8. The largest channel of a row is 448, unless said, so that a
 * scale is 1: then 17 travels as 16, and 19 as 20.
 */
class NormalFp8CombineOracleTest {
    private static final int HIDDEN = Fp8Cast.GROUP;

    private final NormalDispatchCheck plain =
            NormalDispatchCheck.of(new NormalOracle(HandMadeRouting.ROUTING), List.of());

    /** Rows whose first two channels are given, and all others zero. */
    private static Tensor rows(float[]... rows) {
        Tensor x = HostTensors.allocate(DType.BF16, rows.length, HIDDEN);
        for (int row = 0; row < rows.length; row++) {
            x.setFloat(rows[row][0], row, 0);
            x.setFloat(rows[row][1], row, 1);
        }
        return x;
    }

    private static float[] row(float first, float second) {
        return new float[] {first, second};
    }

    /** The right result is accepted, and no other value of a channel. */
    private static void accepts(
            NormalCombineOracle combine,
            int src,
            List<Tensor> outputs,
            List<Tensor> biases,
            Tensor right,
            float... wrong) {
        combine.check(src, CombineFormat.FP8, outputs, biases, right);
        int last = (int) right.size(0) - 1;
        for (float value : wrong) {
            Tensor result = HostTensors.copyOf(right);
            result.setFloat(value, last, 1);
            assertThatThrownBy(() -> combine.check(src, CombineFormat.FP8, outputs, biases, result))
                    .as("%s", value)
                    .isInstanceOf(OracleMismatch.class)
                    .hasMessageContaining("rank %s, token %s, channel 1", src, last);
        }
    }

    @Test
    void rowsAreCastBeforeTheyAreSummed() {
        // Rank 0 holds (0,0) (0,2) (1,0); rank 1 holds (0,1) (0,2) (1,2).
        List<Tensor> outputs =
                List.of(
                        rows(row(448, 17), row(448, 17), row(448, 19)),
                        rows(row(448, 19), row(448, 17), row(448, 1)));
        NormalCombineOracle combine = NormalCombineOracle.of(plain, 2);
        Tensor right = rows(row(448, 16), row(448, 20), row(896, 32));
        // As BF16 travels; the next number; without one of the rows.
        accepts(combine, 0, outputs, List.of(), right, 34, 32.25f, 16, Float.NaN);
        // A token that goes nowhere is zero.
        accepts(combine, 1, outputs, List.of(), rows(row(448, 20), row(0, 0), row(448, 1)), -1);
        Tensor bias = rows(row(0, 1), row(0, 1), row(0, 1));
        Tensor more = rows(row(448, 18), row(448, 22), row(896, 34));
        accepts(combine, 0, outputs, List.of(bias, bias), more, 32, 33);
    }

    @Test
    void selectionsOfARankAreSummedBeforeTheCast() {
        // Rank 0: (0,0,0) (0,2,1) (0,0,1) (1,0,0) (1,0,1); rank 1: (0,1,0) (1,2,0) (0,2,0)
        // (1,2,1).
        List<Tensor> outputs =
                List.of(
                        rows(row(200, 9), row(448, 17), row(248, 8), row(0, 0), row(0, 0)),
                        rows(row(0, 0), row(200, 9), row(448, 17), row(248, 8)));
        NormalCombineOracle combine = NormalCombineOracle.of(plain.expanded(1), 2);
        accepts(combine, 0, outputs, List.of(), rows(row(448, 16), row(0, 0), row(896, 32)), 34);
        accepts(combine, 1, outputs, List.of(), rows(row(0, 0), row(0, 0), row(448, 16)), 17);
    }

    /** Of two rows 17 and 1, which become 16 and 1; with 896 beside it, their sum becomes 16. */
    @Test
    void theSumOfAnotherNodeIsCastOnceMore() {
        Routing routing =
                Routing.of(
                        4,
                        2,
                        new long[][][] {{{2, 3}}, {}, {}, {}},
                        new float[][][] {{{1, 1}}, {}, {}, {}});
        NormalDispatchCheck check = NormalDispatchCheck.of(new NormalOracle(routing), List.of());
        List<Tensor> outputs = List.of(rows(), rows(), rows(row(448, 17)), rows(row(448, 1)));
        NormalCombineOracle nodes = NormalCombineOracle.of(check, 2);
        accepts(nodes, 0, outputs, List.of(), rows(row(896, 16)), 17, 18);
        NormalCombineOracle oneNode = NormalCombineOracle.of(check, 4);
        accepts(oneNode, 0, outputs, List.of(), rows(row(896, 17)), 16, 18);
    }

    /** The home node's sum, 16 and 3, is not cast; those of two other nodes, 16 and 1, are. */
    @Test
    void theSumOfTheHomeNodeIsNot() {
        Routing routing =
                Routing.of(
                        6,
                        6,
                        new long[][][] {{}, {}, {{0, 1, 2, 3, 4, 5}}, {}, {}, {}},
                        new float[][][] {{}, {}, {{1, 1, 1, 1, 1, 1}}, {}, {}, {}});
        NormalDispatchCheck check = NormalDispatchCheck.of(new NormalOracle(routing), List.of());
        Tensor first = rows(row(448, 17)), other = rows(row(448, 1)), home = rows(row(448, 3));
        List<Tensor> outputs = List.of(first, other, first, home, first, other);
        NormalCombineOracle nodes = NormalCombineOracle.of(check, 2);
        accepts(nodes, 2, outputs, List.of(), rows(row(2688, 19 + 16 + 16)), 52, 53);
    }

    /** Rows that are FP8 already have the scales that they are given with. */
    @Test
    void rowsThatAreGivenAsFp8() {
        NormalCombineOracle combine = NormalCombineOracle.of(plain, 2);
        List<ScaledRows> given = List.of(scaled(0.5f, 9, 11, 13), scaled(3, 1, 2, 4));
        Tensor right = rows(row(0, 4.5f), row(0, 3), row(0, 5.5f + 6));
        combine.checkFp8Rows(0, given, right);
        for (float wrong : new float[] {11 + 2, 5.5f, 11.5625f}) {
            right.setFloat(wrong, 2, 1);
            assertThatThrownBy(() -> combine.checkFp8Rows(0, given, right))
                    .isInstanceOf(OracleMismatch.class)
                    .hasMessageContaining("rank 0, token 2, channel 1");
        }
    }

    private static ScaledRows scaled(float scale, float... values) {
        Tensor elements = HostTensors.allocate(DType.FP8_E4M3, values.length, HIDDEN);
        Tensor scales = HostTensors.allocate(DType.F32, values.length, 1);
        for (int row = 0; row < values.length; row++) {
            elements.setFloat(values[row], row, 1);
            scales.setFloat(scale, row, 0);
        }
        return new ScaledRows(elements, scales);
    }
}
