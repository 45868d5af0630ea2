package io.deepep;

/**
 * The result of a low-latency combine.
 *
 * @param x BF16 [T,H], the sums in the order of this rank's tokens: the tensor given as output, or
 *     memory of the plan, overwritten when the plan is combined again
 * @param event done when {@code x} is ready; with a hook, when the send half has finished
 * @param receiveHook null unless the plan asked for it; run it once to receive and sum
 */
public record LowLatencyCombineResult(Tensor x, Event event, Runnable receiveHook) {}
