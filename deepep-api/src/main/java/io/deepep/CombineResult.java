package io.deepep;

/**
 * The result of a combine.
 *
 * @param x BF16 [T,H], the sums in the order of this rank's tokens; a token without selections gets
 *     its biases, or zero. The tensor given as output, or memory of the plan, overwritten when the
 *     plan is combined again
 * @param topkWeights F32 [T,K], the summed weights, in memory of the plan; null if none were given
 * @param event done when the tensors are ready
 */
public record CombineResult(Tensor x, Tensor topkWeights, Event event) {}
