package io.deepep;

/**
 * What a low-latency dispatch received: rows packed per local expert, ordered by (source rank,
 * token, selection), the same on every run. The tensors are the buffer's; they are valid until the
 * second next low-latency dispatch.
 *
 * @param recvX BF16 or FP8 [El, R*maxTokens, H]; of expert e only the first {@code recvCount[e]}
 *     rows are defined
 * @param recvScales null for BF16; F32 [El, R*maxTokens, H/128] or, for UE8M0, I32 [El,
 *     R*maxTokens, ceil(H/512)]; column-major: stride 1 along rows
 * @param recvCount I32 [El], rows of each local expert
 * @param handle the routing, for combine
 * @param event when the tensors are ready; with a hook, when the sends have left
 * @param receiveHook null unless asked for; run it once to receive: afterwards the tensors are
 *     ready
 */
public record LowLatencyDispatchResult(
        Tensor recvX,
        Tensor recvScales,
        Tensor recvCount,
        LowLatencyHandle handle,
        Event event,
        Runnable receiveHook) {}
