package io.deepep;

/**
 * The result of a low-latency combine.
 *
 * @param x BF16 [T,H]: the tensor given as output, or memory of the plan, overwritten when the same
 *     plan is combined again
 * @param event when {@code x} is ready; with a hook, when the sends have left
 * @param receiveHook null unless asked for; run it once to receive and sum
 */
public record LowLatencyCombineResult(Tensor x, Event event, Runnable receiveHook) {}
