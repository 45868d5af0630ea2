package io.deepep.djl.exchange;

import static io.deepep.djl.TorchTensors.scalar;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.Fp8E4m3;
import io.deepep.djl.TorchTensors;

/** Rows as FP8 with a FLOAT32 scale per 128 channels, in libtorch's operations. */
final class Fp8Rows {
    private static final int CHANNELS = Fp8E4m3.CHANNELS_PER_SCALE;
    private static final float MAX = 448;

    /** A block of zeros has this for its largest, as in DeepEP, so that nothing is divided by 0. */
    private static final float LEAST = 1e-4f;

    private Fp8Rows() {}

    /**
     * How many scales a row has.
     *
     * @param channels a multiple of 128
     */
    static int numScales(int channels) {
        return channels / CHANNELS;
    }

    /**
     * Casts rows.
     *
     * @param x [T,H], T at least 1
     * @param rows FP8 [T,C] to write, with zeros behind the H channels of x
     * @param scales FLOAT32 [T,C/128] to write: a block's largest magnitude / 448
     */
    static void quantize(NDArray x, NDArray rows, NDArray scales, NDManager scope) {
        NDArray values = x.toType(DataType.FLOAT32, true);
        values.attach(scope);
        Shape whole = rows.getShape();
        long numZeros = whole.get(1) - x.getShape().get(1);
        if (numZeros > 0) {
            values = values.concat(scope.zeros(new Shape(whole.get(0), numZeros)), 1);
        }
        NDArray blocks = values.reshape(-1, CHANNELS);
        NDArray largest = blocks.abs().max(new int[] {1}, true).maximum(scalar(LEAST));
        NDArray blockScales = largest.div(scalar(MAX));
        TorchTensors.cast(blocks.div(blockScales).reshape(whole), rows);
        TorchTensors.cast(blockScales.reshape(scales.getShape()), scales);
    }

    /** The FLOAT32 values of FP8 rows [...,H] with scales [...,H/128], both with any strides. */
    static NDArray dequantize(NDArray rows, NDArray scales) {
        Shape shape = rows.getShape();
        int last = shape.dimension() - 1;
        // Not -1, which libtorch cannot tell where there are no rows.
        Shape blocks = shape.slice(0, last).add(shape.get(last) / CHANNELS).add(CHANNELS);
        return rows.toType(DataType.FLOAT32, false)
                .reshape(blocks)
                .mul(scales.expandDims(-1))
                .reshape(shape);
    }
}
