package io.deepep;

/**
 * The result of a combine.
 *
 * @param x BF16 [T,H], the sums in the order of this rank's tokens; a token that went nowhere gets
 *     its biases, or zero
 * @param topkWeights F32 [T,K], the summed weights; null if none were given
 * @param event when the tensors are ready
 */
public record CombineResult(Tensor x, Tensor topkWeights, Event event) {}
