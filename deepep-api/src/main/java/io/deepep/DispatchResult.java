package io.deepep;

/**
 * The rows that a normal dispatch received. They are ordered by (source rank, token), in the
 * expanded layout by (local expert, source rank, token, selection), so that every run gives the
 * same order. The tensors are valid until the plan is dispatched again; a {@linkplain
 * DispatchPlan.Receive#VIEW view} only until the next normal dispatch on the buffer, or its close.
 *
 * @param recvX BF16 or FP8_E4M3 [N,H]; rows are contiguous, but their stride may exceed H.
 *     Expanded: [M,H], where M is the sum of the aligned counts and padding rows are zero
 * @param recvScales F32 [N,H/128] (expanded: [M,H/128]); null for BF16
 * @param recvTopkIdx I64 [N,K], the index of the local expert or -1; null without top-k, and in the
 *     expanded layout
 * @param recvTopkWeights F32 [N,K], 0 where the index is -1; null without weights. Expanded: F32
 *     [M], the weight of each row's selection
 * @param numRecvTokensPerExpert I32 [El] on the host, rows of each local expert, rounded up to the
 *     expert alignment; null without top-k, and for cached dispatches. In worst-case mode valid
 *     once {@code event} is done
 * @param expertOffsets I32 [El+1], the first row of each local expert in the expanded layout, then
 *     the end of the last; null in the other layout
 * @param numRecvTokens N, or M in the expanded layout; in worst-case mode the number of rows given
 *     in the plan
 * @param handle the routing, for combine and cached dispatches
 * @param event done when the tensors are ready
 */
public record DispatchResult(
        Tensor recvX,
        Tensor recvScales,
        Tensor recvTopkIdx,
        Tensor recvTopkWeights,
        Tensor numRecvTokensPerExpert,
        Tensor expertOffsets,
        int numRecvTokens,
        DispatchHandle handle,
        Event event) {}
