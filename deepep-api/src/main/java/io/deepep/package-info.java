/**
 * What an inference engine compiles against: {@link io.deepep.Buffer} and everything its calls take
 * and give.
 *
 * <p>Notation in the documentation: R ranks, E experts, El = E / R local experts, T tokens of this
 * rank, K experts per token, H hidden size, N tokens received by this rank.
 */
package io.deepep;
