// First phase of a dispatch across nodes: who gets which token, and where among this rank's tokens it stands there.
#pragma once

#include "../shared/dispatch_notify.cuh"
#include "internode_exchange.cuh"

namespace deepep::normal {

// Tokens are counted for 32 ranks at a time: a window of nodes from the first one on, and of a large node of its ranks
// from the first one on.
constexpr int kNodesAtOnce = kIsWide ? 1 : 32 / kMaxRanks;
constexpr int kRanksAtOnce = 32 / kNodesAtOnce;

struct NodeWindow {
    int first_node;
    static constexpr int first_rank = 0;

    __device__ NodeWindow(int node, int) : first_node(node) {}
    __device__ void advance(const Internode&) { first_node += kNodesAtOnce; }
    __device__ bool is_first() const { return first_node == 0; }
    // A rank of a node.
    __device__ static bool has(uint32_t) { return true; }
    // One of the 32 places from the first one on.
    __device__ static bool has_place(const Internode& b, int place) {
        return place < b.network.num_nodes * kMaxRanks;
    }
};

struct RankWindow {
    int first_node, first_rank;

    __device__ RankWindow(int node, int rank) : first_node(node), first_rank(rank) {}
    __device__ void advance(const Internode& b) {
        first_rank += kRanksAtOnce;
        if (first_rank >= b.node_places) first_rank = 0, ++first_node;
    }
    __device__ bool is_first() const { return first_node == 0 && first_rank == 0; }
    __device__ bool has(uint32_t rank) const { return rank - first_rank < kRanksAtOnce; }
    __device__ bool has_place(const Internode& b, int place) const { return place < (first_node + 1) * b.node_places; }
};

using Window = std::conditional_t<kIsWide, RankWindow, NodeWindow>;

// Of a node of num_nvl ranks, how many are in a window; and which is the first of the i-th node there, among all.
__device__ __forceinline__ int ranks_of(Window window, int num_nvl) {
    return kIsWide ? min(num_nvl - window.first_rank, kRanksAtOnce) : num_nvl;
}
__device__ __forceinline__ int first_rank_of(Window window, int num_nvl, int i) {
    return (window.first_node + i) * num_nvl + window.first_rank;
}

// Rows at the ranks of one node that are in a window.
struct alignas(16) WindowRows {
    int32_t row[kRanksAtOnce];
};

// Puts them among the rows of the whole node.
__device__ __forceinline__ void store_order(const Internode& b, Window window, NodeRows* rows,
                                            const WindowRows& order) {
    if constexpr (kIsWide) {
        auto to = reinterpret_cast<int4*>(rows->row + window.first_rank);
#pragma unroll
        for (int i = 0; i < kRanksAtOnce / 4; ++i)
            if (window.first_rank + i * 4 < b.node_places) to[i] = reinterpret_cast<const int4*>(order.row)[i];
    } else {
        *reinterpret_cast<WindowRows*>(rows) = order;
    }
}

using CountShared = TokenCounts<32>;

// Where the layout sends token t among the ranks of a window: bit i * kRanksAtOnce + r for the r-th of the i-th node.
__device__ inline uint32_t layout_node_mask(const InternodeDispatchParams& params, int t, Window window) {
    const DispatchParams& p = params.local;
    int num_nvl = p.group.num_ranks, num_ranks = ranks_of(window, num_nvl);
    uint32_t mask = 0;
    auto row = at<const uint8_t>(p.is_token_in_rank) + static_cast<size_t>(t) * params.between.num_ranks;
    for (int i = 0; i < kNodesAtOnce && window.first_node + i < params.between.network.num_nodes; ++i)
        for (int r = 0; r < num_ranks; ++r)
            mask |= static_cast<uint32_t>(row[first_rank_of(window, num_nvl, i) + r] != 0) << (i * kRanksAtOnce + r);
    return mask;
}

// Where token t goes, as a mask of the same form. Counts its selections in hist, if that is given; records bad ones,
// and layouts that differ.
__device__ inline uint32_t node_mask(const InternodeDispatchParams& params, int t, Window window, uint32_t* hist) {
    const DispatchParams& p = params.local;
    if (p.topk == 0) return layout_node_mask(params, t, window);
    int num_nvl = p.group.num_ranks;
    uint32_t mask = 0;
    bool good = true;
    auto row = at<const int64_t>(p.topk_idx) + static_cast<size_t>(t) * p.topk;
    uint32_t experts_per_rank = p.num_experts / params.between.num_ranks;
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
            uint32_t rank = static_cast<uint32_t>(expert[j]) / experts_per_rank;
            uint32_t node = rank / num_nvl - window.first_node;
            if (node < kNodesAtOnce && window.has(rank % num_nvl))
                mask |= 1u << (node * kRanksAtOnce + rank % num_nvl - window.first_rank);
            if (hist) atomicAdd(&hist[expert[j]], 1);
        }
    }
    if (p.is_token_in_rank && good) {
        uint32_t wrong = mask ^ layout_node_mask(params, t, window);
        int bit = __ffs(wrong) - 1, node = window.first_node + bit / kRanksAtOnce;
        if (wrong != 0)
            keep_bad_selection(p, t, kFirstMaskKey + node * num_nvl + window.first_rank + bit % kRanksAtOnce);
    }
    return mask;
}

// One step: the order, among the block's tokens, of this thread's token at each rank of a window. All threads.
__device__ inline void order_tokens(CountShared& shared, uint32_t mask, WindowRows* order) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        uint32_t senders = __ballot_sync(~0u, mask >> i & 1);
        order[i / kRanksAtOnce].row[i % kRanksAtOnce] = __popc(senders & ((1u << lane) - 1));
        if (lane == i) shared.warp_counts[warp][i] = __popc(senders);
    }
    __syncthreads();
    sum_warp_counts(shared);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        int32_t& at_rank = order[i / kRanksAtOnce].row[i % kRanksAtOnce];
        at_rank = mask >> i & 1 ? at_rank + shared.warp_counts[warp][i] : -1;
    }
    __syncthreads();
}

// The ranks of a window that tokens of this rank get to, as a mask of the same form.
template <class Net>
__device__ inline uint32_t reached_mask(const InternodeDispatchParams& params, Window window) {
    if (!Routes<Net>::kMaskable) return ~0u;
    const Network& net = params.between.network;
    int num_nvl = params.local.group.num_ranks, num_ranks = ranks_of(window, num_nvl);
    uint32_t mask = 0;
    for (int i = 0; i < kNodesAtOnce && window.first_node + i < net.num_nodes; ++i)
        for (int r = 0; r < num_ranks; ++r)
            mask |= static_cast<uint32_t>(Routes<Net>::reaches(net, first_rank_of(window, num_nvl, i) + r))
                    << (i * kRanksAtOnce + r);
    return mask;
}

// Writes token_order of this block's tokens, counted from the block's first, and block_counts; adds to expert_hist.
// hist: num_experts words of shared memory. All threads of the block.
template <class Net>
__device__ inline void count_tokens(const InternodeDispatchParams& params, CountShared& shared, uint32_t* hist) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    int num_nodes = params.between.network.num_nodes;
    TokenRange tokens = block_tokens(p.num_tokens);
    for (int e = threadIdx.x; e < p.num_experts; e += kThreads) hist[e] = 0;
    for (Window window{0, 0}; window.first_node < num_nodes; window.advance(b)) {
        uint32_t reached = reached_mask<Net>(params, window);
        if (threadIdx.x < 32) shared.running[threadIdx.x] = 0;
        __syncthreads();
        for (int first = tokens.begin; first < tokens.end; first += kThreads) {
            int t = first + threadIdx.x;
            uint32_t mask = t < tokens.end ? node_mask(params, t, window, window.is_first() ? hist : nullptr) : 0;
            mask &= reached;
            WindowRows order[kNodesAtOnce];
            order_tokens(shared, mask, order);
#pragma unroll
            for (int i = 0; i < kNodesAtOnce; ++i)
                if (t < tokens.end && window.first_node + i < num_nodes) {
                    auto rows = node_rows(b, p.token_order, p.num_tokens, window.first_node + i, t);
                    store_order(b, window, rows, order[i]);
                }
        }
        int place = window.first_node * node_places(b) + window.first_rank + threadIdx.x;
        if (threadIdx.x < 32 && window.has_place(b, place))
            at<int32_t>(b.block_counts)[blockIdx.x * num_nodes * node_places(b) + place] = shared.running[threadIdx.x];
        __syncthreads();
    }
    auto total = at<uint32_t>(p.expert_hist);
    for (int e = threadIdx.x; e < p.num_experts; e += kThreads)
        if (hist[e] != 0) atomicAdd(&total[e], hist[e]);
}

// What this rank says of a new or cached dispatch. All threads of the leader.
template <class Net>
__device__ inline void announce_words(const InternodeDispatchParams& params, int32_t* words) {
    const DispatchParams& p = params.local;
    if (threadIdx.x < 32) {
        int32_t value = dispatch_word(p, params.between.num_ranks, Routes<Net>::word(p.group));
        switch (threadIdx.x) {
            case kNumBlocks: value = gridDim.x; break;
            // A channel's slots are divided among its rings, so other numbers of both can have the same slots in each.
            case kNumSlots: value = params.between.num_slots | p.num_copy_warps << kRingsShift; break;
            case kNumTokens: value = p.num_tokens; break;
            case kExpandedLimited: value = p.expanded_limit > 0; break;
        }
        words[threadIdx.x] = value;
    }
    __syncthreads();
}

// Where the rows of each block begin at one rank, of which `base` is this rank's first row.
__device__ inline void place_blocks_at(const Internode& b, int place, int32_t base) {
    constexpr int kAtOnce = 8;
    int num_blocks = gridDim.x, num_places = b.network.num_nodes * node_places(b);
    auto block_counts = at<const int32_t>(b.block_counts);
    for (int first = 0; first < num_blocks; first += kAtOnce) {
        int32_t counts[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
            counts[i] = first + i < num_blocks ? block_counts[(first + i) * num_places + place] : 0;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
            if (first + i < num_blocks) at<int32_t>(b.block_bases)[(first + i) * num_places + place] = base;
            base += counts[i];
        }
    }
}

// Rows that each rank receives against what it can take; then where the rows of this rank's blocks begin at each rank.
// All threads of the leader.
template <class Net>
__device__ inline Fault place_all_rows(const Nodes<Net>& nodes, uint32_t epoch) {
    const Group& g = nodes.g;
    const Internode& b = nodes.b;
    __shared__ int32_t first_full;
    Fault fault;
    fault.code = kTimeout;
    if (threadIdx.x == 0) first_full = INT32_MAX;
    bool limited = false;
    if (!await_words(nodes, epoch, kHeaderWords, b.num_ranks)) return fault;
    int me = my_rank(g);
    for (int d = threadIdx.x; d < b.num_ranks; d += blockDim.x) {
        int64_t rows = 0, before = 0;
        if (!nodes.is_source(d)) continue;
#pragma unroll 8
        for (int s = 0; s < b.num_ranks; ++s) {
            if (!nodes.is_source(s)) continue;
            int32_t count = header_word(g, s, kHeaderWords + d, epoch);
            rows += count;
            if (s < me) before += count;
        }
        if (rows > header_word(g, d, kRowLimit, epoch)) atomicMin(&first_full, d);
        limited |= header_word(g, d, kExpandedLimited, epoch) != 0;
        if (d == me) plan_of(b)->num_rows = static_cast<int32_t>(rows);
        place_blocks_at(b, place_of(g, b, d), static_cast<int32_t>(before));
    }
    for (int n = threadIdx.x; n < Homes<Net>::size(b.network); n += blockDim.x) {
        bool sends = !Routes<Net>::kMaskable || Homes<Net>::is_used(b.network, n);
        at<int32_t>(b.source_tokens)[n] =
            sends ? header_word(g, Homes<Net>::rank(g, b.network, n), kNumTokens, epoch) : 0;
    }
    limited = __syncthreads_or(limited);
    if (threadIdx.x == 0 && !Routes<Net>::ends_together(b.network)) plan_of(b)->ends_together = limited;
    fault.code = kOk;
    if (first_full == INT32_MAX) return fault;
    fault.code = kTooManyRows;
    fault.rank = first_full;
    fault.expected = header_word(g, first_full, kRowLimit, epoch);
    for (int s = 0; s < b.num_ranks; ++s)
        if (nodes.is_source(s)) fault.seen += header_word(g, s, kHeaderWords + first_full, epoch);
    if (threadIdx.x == 0) record_fault(g, epoch, fault);
    return fault;
}

// The ranks that no tokens of this rank get to.
template <class Net>
struct Unreached {
    const Network& net;

    __device__ bool operator()(int rank) const { return !Routes<Net>::reaches(net, rank); }
};

// The leader, from its announcement to its verdict. All threads.
template <class Net>
__device__ inline void lead_dispatch(const InternodeDispatchParams& params, uint32_t epoch) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    __shared__ int32_t words[kHeaderWords];
    auto hist = at<uint32_t>(p.expert_hist);
    if (!p.cached) sum_counts<Net>(b, p.group, epoch);
    announce_words<Net>(params, words);
    if (!p.cached)
        check_layout(p, b.num_ranks, words, own_header<Net>(p.group, b, epoch) + kHeaderWords, hist,
                     Unreached<Net>{b.network});
    if (Routes<Net>::kMaskable && !p.cached) {
        __syncthreads();
        for (int e = threadIdx.x; e < p.num_experts; e += blockDim.x)
            if (!Routes<Net>::reaches(b.network, e / (p.num_experts / b.num_ranks))) hist[e] = 0;
        __syncthreads();
    }
    announce<Net>(b, p.group, epoch, words, hist);
    if (!p.cached)
        for (int e = threadIdx.x; e < p.num_experts; e += blockDim.x) hist[e] = 0;
    if (threadIdx.x == 0) {
        plan_of(b)->ends_together = Routes<Net>::ends_together(b.network);
        plan_of(b)->num_rows = 0;
    }
    __syncthreads();
    Nodes<Net> nodes{p.group, b};
    Fault fault = open_call(nodes, epoch);
    if (fault.code == kOk && !p.cached) fault = place_all_rows(nodes, epoch);
    if (threadIdx.x == 0 && fault.code != kOk) plan_of(b)->num_rows = 0;
    give_verdict(b, epoch, fault.code);
}

}  // namespace deepep::normal
