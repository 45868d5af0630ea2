/**
 * The API that inference engines compile against: {@link io.deepep.Buffer} and everything that its
 * calls take and return.
 *
 * <p>Notation in the documentation: R ranks, E experts, El = E / R local experts, T tokens of this
 * rank, K experts per token, H hidden size (in elements), N rows received by this rank, and M of
 * them in the expanded layout. {@code BF16 [T,H]} is a tensor of that element type and shape.
 */
package io.deepep;
