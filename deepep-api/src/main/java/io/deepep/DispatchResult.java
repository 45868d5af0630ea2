package io.deepep;

/**
 * What a normal dispatch received. Rows are ordered by (source rank, token) and are the same on
 * every run; in the expanded layout by (local expert, source rank, token, selection).
 *
 * @param recvX BF16 or FP8 [N,H]; rows are contiguous, their stride may exceed H. Expanded: [M,H]
 *     with M the sum of the aligned counts, padding rows zero
 * @param recvScales F32 [N,H/128], or null for BF16
 * @param recvTopkIdx I64 [N,K], local expert or -1; null without top-k, and in the expanded layout
 * @param recvTopkWeights F32 [N,K], 0 where the index is -1; null without weights. Expanded: F32
 *     [M], the weight of each row's selection
 * @param numRecvTokensPerExpert I32 [El] on the host, rounded up to the expert alignment; null
 *     without top-k, and for cached dispatches. In worst-case mode valid once {@code event} is done
 * @param expertOffsets I32 [El+1], first row of each expert in the expanded layout, and their end;
 *     null otherwise
 * @param numRecvTokens N, or M in the expanded layout; in worst-case mode the number of rows given
 *     in the plan
 * @param handle the routing, for combine and cached dispatch
 * @param event when the tensors are ready
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
