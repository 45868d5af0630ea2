package io.deepep;

import java.util.Objects;

/**
 * Rows in FP8 with their scales: a channel is its code times the scale that it shares with the 127
 * others of its group. Like all tensors, these two are views; {@link Buffer#getFp8CombineBuffer}
 * says whose memory they show.
 *
 * @param elements the codes, FP8_E4M3 [N,H]
 * @param scales F32 [N,H/128]
 */
public record ScaledRows(Tensor elements, Tensor scales) {
    /** Requires both tensors; whoever takes the rows checks their types and shapes. */
    public ScaledRows {
        Objects.requireNonNull(elements, "elements");
        Objects.requireNonNull(scales, "scales");
    }

    /**
     * Requires scales for FP8 rows, and none for others.
     *
     * @param shape of the scales, for the message
     */
    static void requirePair(Tensor x, Tensor scales, String shape) {
        boolean fp8 = x.dtype() == DType.FP8_E4M3;
        if ((scales != null) != fp8) {
            throw new IllegalArgumentException(
                    fp8
                            ? "x is FP8_E4M3 but scales=null; give scales F32 " + shape
                            : "scales are given but x is %s; give x as FP8_E4M3, or no scales"
                                    .formatted(x.dtype()));
        }
    }
}
