// First phase of dispatch: who gets which token, and where among this rank's tokens it stands there.
#pragma once

#include <type_traits>

#include "exchange.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

constexpr int kWarps = kThreads / 32;
constexpr int kSelectionBatch = 8;

// The tokens of a block are contiguous, so that rows, in order of token, follow from one count per block.
struct TokenRange {
    int begin, end;
};

__device__ __forceinline__ int tokens_per_block(int num_tokens) { return (num_tokens + gridDim.x - 1) / gridDim.x; }

__device__ __forceinline__ TokenRange block_tokens(int num_tokens) {
    int per_block = tokens_per_block(num_tokens);
    int begin = min(num_tokens, static_cast<int>(blockIdx.x) * per_block);
    return {begin, min(num_tokens, begin + per_block)};
}

// Tokens of a block for each of some ranks: of the step by its warps, and of the steps before.
template <int kRanks>
struct TokenCounts {
    int32_t warp_counts[kWarps][kRanks];
    int32_t running[kRanks];
};

using LayoutShared = TokenCounts<kMaxRanks>;

// Keeps the first bad selection of a call: token t's k, or its receiver k - kFirstMaskKey.
constexpr int kFirstMaskKey = 128;
constexpr int kSelectionBits = 16;
static_assert(kMaxTopk <= kFirstMaskKey);

__device__ __forceinline__ void keep_bad_selection(const DispatchParams& p, int t, int k) {
    uint64_t key = ~(static_cast<uint64_t>(t) << kSelectionBits | k);
    atomicMax(reinterpret_cast<unsigned long long*>(&state_of(p.group)->bad_selection), key);
}

// Ranks of a large node, 32 to a word, which stay in registers; those of other nodes are one word.
struct WideMask {
    uint32_t word[kRounds];
};

using RankMask = std::conditional_t<kIsWide, WideMask, uint32_t>;

// Adds a rank, or does not.
__device__ __forceinline__ void add_rank(uint32_t& mask, int rank, uint32_t present) { mask |= present << rank; }
__device__ __forceinline__ void add_rank(WideMask& mask, int rank, uint32_t present) {
#pragma unroll
    for (int w = 0; w < kRounds; ++w) mask.word[w] |= rank / 32 == w ? present << rank % 32 : 0;
}

// Those that are not masked.
__device__ __forceinline__ uint32_t without(const Group& g, uint32_t mask, MaskedRanks masked) {
    return mask & ~masked.among(g, 0);
}
__device__ __forceinline__ WideMask without(const Group& g, const WideMask& mask, MaskedRanks masked) {
    WideMask left;
#pragma unroll
    for (int w = 0; w < kRounds; ++w) left.word[w] = mask.word[w] & ~masked.among(g, w);
    return left;
}

// The ranks that are in one of them alone, and the first of some ranks; less than 0: there is none.
__device__ __forceinline__ uint32_t difference(uint32_t a, uint32_t b) { return a ^ b; }
__device__ __forceinline__ WideMask difference(const WideMask& a, const WideMask& b) {
    WideMask mask;
#pragma unroll
    for (int w = 0; w < kRounds; ++w) mask.word[w] = a.word[w] ^ b.word[w];
    return mask;
}
__device__ __forceinline__ bool is_empty(uint32_t mask) { return mask == 0; }
__device__ __forceinline__ bool is_empty(const WideMask& mask) {
    uint32_t all = 0;
#pragma unroll
    for (int w = 0; w < kRounds; ++w) all |= mask.word[w];
    return all == 0;
}
__device__ __forceinline__ int first_rank(uint32_t mask) { return __ffs(mask) - 1; }
__device__ __forceinline__ int first_rank(const WideMask& mask) {
    int first = -1;
#pragma unroll
    for (int w = kRounds - 1; w >= 0; --w)
        if (mask.word[w] != 0) first = w * 32 + first_rank(mask.word[w]);
    return first;
}

// Ranks that the layout sends token t to.
__device__ inline RankMask layout_mask(const DispatchParams& p, int t) {
    RankMask mask = {};
    auto row = at<const uint8_t>(p.is_token_in_rank) + static_cast<size_t>(t) * p.group.num_ranks;
    for (int d = 0; d < p.group.num_ranks; ++d) add_rank(mask, d, row[d] != 0);
    return mask;
}

// Ranks that token t goes to. Counts its selections in hist; keeps bad ones, and layouts that differ.
__device__ inline RankMask token_mask(const DispatchParams& p, int t, uint32_t* hist) {
    if (p.topk == 0) return layout_mask(p, t);
    RankMask mask = {};
    bool good = true;
    auto row = at<const int64_t>(p.topk_idx) + static_cast<size_t>(t) * p.topk;
    uint32_t experts_per_rank = p.num_experts / p.group.num_ranks;
    for (int k0 = 0; k0 < p.topk; k0 += kSelectionBatch) {
        int64_t expert[kSelectionBatch];
#pragma unroll
        for (int j = 0; j < kSelectionBatch; ++j) expert[j] = k0 + j < p.topk ? row[k0 + j] : -1;
#pragma unroll
        for (int j = 0; j < kSelectionBatch; ++j) {
            if (expert[j] == -1) continue;
            if (expert[j] < 0 || expert[j] >= p.num_experts) {
                keep_bad_selection(p, t, k0 + j);
                good = false;
                continue;
            }
            add_rank(mask, static_cast<uint32_t>(expert[j]) / experts_per_rank, 1);
            atomicAdd(&hist[expert[j]], 1);
        }
    }
    if (p.is_token_in_rank && good) {
        RankMask wrong = difference(mask, layout_mask(p, t));
        if (!is_empty(wrong)) keep_bad_selection(p, t, kFirstMaskKey + first_rank(wrong));
    }
    return mask;
}

// The counts of warps become those of the tokens before them. One thread for each rank.
template <int kRanks>
__device__ __forceinline__ void sum_warp_counts(TokenCounts<kRanks>& shared) {
    if (threadIdx.x >= kRanks) return;
    int32_t sum = shared.running[threadIdx.x];
    for (int w = 0; w < kWarps; ++w) {
        int32_t count = shared.warp_counts[w][threadIdx.x];
        shared.warp_counts[w][threadIdx.x] = sum;
        sum += count;
    }
    shared.running[threadIdx.x] = sum;
}

// Where token t, whose ranks are `mask`, stands among the block's tokens so far, of which each thread has one. With
// more ranks than a lane has registers for: once to count, once more to place. All threads of the block.
__device__ inline void order_tokens(const DispatchParams& p, LayoutShared& shared, const WideMask& mask, int t,
                                    bool mine) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, num_ranks = p.group.num_ranks;
#pragma unroll
    for (int w = 0; w < kRounds; ++w)
        for (int i = 0; i < 32 && w * 32 + i < num_ranks; ++i) {
            uint32_t senders = __ballot_sync(~0u, mask.word[w] >> i & 1);
            if (lane == i) shared.warp_counts[warp][w * 32 + i] = __popc(senders);
        }
    __syncthreads();
    sum_warp_counts(shared);
    __syncthreads();
    auto order = at<int32_t>(p.token_order) + static_cast<size_t>(mine ? t : 0) * num_ranks;
#pragma unroll
    for (int w = 0; w < kRounds; ++w)
        for (int i = 0; i < 32 && w * 32 + i < num_ranks; ++i) {
            uint32_t senders = __ballot_sync(~0u, mask.word[w] >> i & 1);
            int32_t before = shared.warp_counts[warp][w * 32 + i] + __popc(senders & ((1u << lane) - 1));
            if (mine) order[w * 32 + i] = mask.word[w] >> i & 1 ? before : -1;
        }
    __syncthreads();
}

// The same where a lane has a register for each rank.
__device__ __forceinline__ void order_tokens(const DispatchParams& p, LayoutShared& shared, uint32_t mask, int t,
                                             bool mine) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, num_ranks = p.group.num_ranks;
    int32_t in_warp[kMaxRanks];
#pragma unroll
    for (int d = 0; d < kMaxRanks; ++d) {
        uint32_t senders = __ballot_sync(~0u, mask >> d & 1);
        in_warp[d] = __popc(senders & ((1u << lane) - 1));
        if (lane == d) shared.warp_counts[warp][d] = __popc(senders);
    }
    __syncthreads();
    sum_warp_counts(shared);
    __syncthreads();
    if (mine) {
        auto order = at<int32_t>(p.token_order) + static_cast<size_t>(t) * num_ranks;
#pragma unroll
        for (int d = 0; d < kMaxRanks; ++d)
            if (d < num_ranks) order[d] = mask >> d & 1 ? shared.warp_counts[warp][d] + in_warp[d] : -1;
    }
    __syncthreads();
}

// Writes token_order of this block's tokens, counted from the block's first, and block_counts; adds to expert_hist.
// hist: num_experts words of shared memory. All threads of the block.
__device__ inline void lay_out_tokens(const DispatchParams& p, LayoutShared& shared, uint32_t* hist,
                                      MaskedRanks masked) {
    TokenRange tokens = block_tokens(p.num_tokens);
    for (int e = threadIdx.x; e < p.num_experts; e += kThreads) hist[e] = 0;
    if (threadIdx.x < kMaxRanks) shared.running[threadIdx.x] = 0;
    __syncthreads();
    for (int first = tokens.begin; first < tokens.end; first += kThreads) {
        int t = first + threadIdx.x;
        RankMask mask = t < tokens.end ? without(p.group, token_mask(p, t, hist), masked) : RankMask{};
        order_tokens(p, shared, mask, t, t < tokens.end);
    }
    if (threadIdx.x < kMaxRanks) state_of(p.group)->block_counts[blockIdx.x][threadIdx.x] = shared.running[threadIdx.x];
    auto total = at<uint32_t>(p.expert_hist);
    for (int e = threadIdx.x; e < p.num_experts; e += kThreads)
        if (hist[e] != 0) atomicAdd(&total[e], hist[e]);
}

// The ranks that a warp takes: one, in large nodes every so many warps one. At least num_ranks warps, or a large node.
template <class Body>
__device__ __forceinline__ void for_ranks_of_warp(int num_ranks, Body body) {
    int warp = threadIdx.x / 32;
    if constexpr (kIsWide) {
        for (int rank = warp; rank < num_ranks; rank += blockDim.x / 32) body(rank);
    } else {
        if (warp < num_ranks) body(warp);
    }
}

// bases[b][d]: the row at rank d of block b's first token that goes there. All threads of the block; zeros when cached,
// because token_rows are rows already.
__device__ inline void place_blocks(const DispatchParams& p, const int32_t* row_base, int32_t (*bases)[kMaxRanks]) {
    int lane = threadIdx.x % 32, num_blocks = gridDim.x;
    for_ranks_of_warp(p.group.num_ranks, [&](int dest) {
        int32_t sum = p.cached ? 0 : row_base[dest];
        for (int first = 0; first < num_blocks; first += 32) {
            int b = first + lane;
            int32_t count = !p.cached && b < num_blocks ? state_of(p.group)->block_counts[b][dest] : 0;
            int32_t end = sum + inclusive_sum(count);
            if (b < num_blocks) bases[b][dest] = end - count;
            sum = __shfl_sync(~0u, end, 31);
        }
    });
    __syncthreads();
}

}  // namespace deepep::normal
