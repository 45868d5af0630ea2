package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

/**
 * Values as gpt-oss publishes them: blocks of 32 values of 4 bits (E2M1), the lower half of a byte
 * first, with a power of two per block.
 */
final class Mxfp4 {
    static final int BLOCK_BYTES = 16;

    private static final float[] MAGNITUDES = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    private static final int EXPONENT_BIAS = 127;

    /** FLOAT32 [256,2], the two values of a byte, and [256,1], what a scale stands for. */
    private final NDArray valuesOf;

    private final NDArray scaleOf;

    /** The tables lie on the manager's device. */
    Mxfp4(NDManager manager) {
        float[] values = new float[2 * 256];
        float[] scales = new float[256];
        for (int code = 0; code < scales.length; code++) {
            values[2 * code] = value(code & 15);
            values[2 * code + 1] = value(code >> 4);
            scales[code] = (float) Math.scalb(1.0, code - EXPONENT_BIAS);
        }
        valuesOf = manager.create(values, new Shape(256, 2));
        scaleOf = manager.create(scales, new Shape(256, 1));
    }

    private static float value(int code) {
        float magnitude = MAGNITUDES[code & 7];
        return code < 8 ? magnitude : -magnitude;
    }

    /**
     * FLOAT32 [n,32*G].
     *
     * @param blocks UINT8 [n,G,16]
     * @param scales UINT8 [n,G]
     */
    NDArray values(NDArray blocks, NDArray scales) {
        NDManager scope = blocks.getManager();
        Shape shape = blocks.getShape();
        long numBlocks = shape.get(1);
        NDArray values = valuesOf.get(scope, index(blocks));
        return values.reshape(shape.get(0), numBlocks, 2 * BLOCK_BYTES)
                .mul(scaleOf.get(scope, index(scales)))
                .reshape(shape.get(0), -1);
    }

    private static NDIndex index(NDArray codes) {
        return new NDIndex("{}", codes.toType(DataType.INT64, true));
    }
}
