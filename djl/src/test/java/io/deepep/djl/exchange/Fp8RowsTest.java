package io.deepep.djl.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.Tensor;
import io.deepep.djl.Moe;
import io.deepep.djl.TorchTensors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The cast of whole rows against the same cast of single elements in Java. */
class Fp8RowsTest {
    private static final int TOKENS = 5;
    private static final int HIDDEN = 256;

    private final NDManager manager = Moe.manager();

    @AfterEach
    void close() {
        manager.close();
    }

    @Test
    void everyBlockHasItsScale() {
        NDArray x = Moe.random(manager, 1, 3, TOKENS, HIDDEN);
        x.set(new NDIndex("2, :128"), 0); // a block of zeros
        NDArray rows = TorchTensors.empty(manager, DType.FP8_E4M3, TOKENS, HIDDEN);
        NDArray scales = TorchTensors.empty(manager, DType.F32, TOKENS, Fp8Rows.numScales(HIDDEN));
        Fp8Rows.quantize(x, rows, scales, manager);
        NDArray values = rows.toType(DataType.FLOAT32, true);
        NDArray back = Fp8Rows.dequantize(rows, scales);
        for (int t = 0; t < TOKENS; t++) {
            for (int block = 0; block < HIDDEN / 128; block++) {
                float largest = 1e-4f;
                for (int h = 128 * block; h < 128 * (block + 1); h++) {
                    largest = Math.max(largest, Math.abs(x.getFloat(t, h)));
                }
                float scale = scales.getFloat(t, block);
                // GPUs multiply by the reciprocal.
                assertThat(scale).isCloseTo(largest / 448, within(1e-6f * scale));
                for (int h = 128 * block; h < 128 * (block + 1); h++) {
                    byte expected = Fp8E4m3.fromFloat(x.getFloat(t, h) / scale);
                    assertThat(values.getFloat(t, h)).isEqualTo(Fp8E4m3.toFloat(expected));
                    assertThat(back.getFloat(t, h))
                            .isEqualTo(Fp8E4m3.toFloat(expected) * scale)
                            .isCloseTo(x.getFloat(t, h), within(largest / 16));
                }
            }
        }
        assertThat(back.get("2, :128").abs().max().getFloat()).isZero();
    }

    /** Received rows are views with gaps. */
    @Test
    void strideOfRowsIsFree() {
        NDArray x = Moe.random(manager, 1, 3, TOKENS, HIDDEN);
        NDArray rows = TorchTensors.empty(manager, DType.FP8_E4M3, TOKENS, 2 * HIDDEN);
        NDArray scales = TorchTensors.empty(manager, DType.F32, 2, TOKENS);
        Tensor wide = TorchTensors.tensorOf(rows);
        NDArray narrow = TorchTensors.arrayOf(manager, wide.slice(1, 0, HIDDEN));
        NDArray columns = scales.transpose();
        Fp8Rows.quantize(x, narrow, columns, manager);
        assertThat(Moe.maxError(Fp8Rows.dequantize(narrow, columns), x))
                .isLessThan(Moe.largest(x) / 16);
    }

    /** Of a rank that nobody sent anything, in both modes. */
    @Test
    void noRowsAreNoValues() {
        for (long[] shape : new long[][] {{0, HIDDEN}, {2, 0, HIDDEN}}) {
            NDArray rows = TorchTensors.empty(manager, DType.FP8_E4M3, shape);
            long[] ofScales = shape.clone();
            ofScales[shape.length - 1] = Fp8Rows.numScales(HIDDEN);
            NDArray scales = TorchTensors.empty(manager, DType.F32, ofScales);
            assertThat(Fp8Rows.dequantize(rows, scales).getShape()).isEqualTo(new Shape(shape));
        }
    }
}
