package io.deepep;

/**
 * The rows that a low-latency dispatch received, packed per local expert. They are ordered by
 * (source rank, token, selection), so that every run gives the same order. The tensors belong to
 * the buffer and are valid until the buffer's second low-latency dispatch after this one.
 *
 * @param recvX BF16 or FP8_E4M3 [El, R*maxTokens, H]; only the first {@code recvCount[e]} rows of
 *     local expert e are defined
 * @param recvScales null for BF16; F32 [El, R*maxTokens, H/128] or, for UE8M0, I32 [El,
 *     R*maxTokens, ceil(H/512)] (see {@link Ue8m0}). Column-major: stride 1 along rows
 * @param recvCount I32 [El], rows of each local expert
 * @param handle the routing, for combine
 * @param event done when the tensors are ready; with a hook, when the send half has finished
 * @param receiveHook null unless the plan asked for it; run it once to receive the tensors, those
 *     of one plan in the order of its calls
 */
public record LowLatencyDispatchResult(
        Tensor recvX,
        Tensor recvScales,
        Tensor recvCount,
        LowLatencyHandle handle,
        Event event,
        Runnable receiveHook) {}
