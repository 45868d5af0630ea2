// First phase of a dispatch across nodes: who gets which token, and where among this rank's tokens it stands there.
#pragma once

#include "../shared/dispatch_notify.cuh"
#include "internode_exchange.cuh"

namespace deepep::normal {

constexpr int kNodesAtOnce = 32 / kMaxRanks;

struct CountShared {
    int32_t warp_counts[kWarps][32];
    int32_t running[32];
};

// Where the layout sends token t among nodes first_node .. first_node + 3: bit 8 * i + r for rank r of the i-th.
__device__ inline uint32_t layout_node_mask(const InternodeDispatchParams& params, int t, int first_node) {
    const DispatchParams& p = params.local;
    int num_nvl = p.group.num_ranks;
    uint32_t mask = 0;
    auto row = at<const uint8_t>(p.is_token_in_rank) + static_cast<size_t>(t) * params.between.num_ranks;
    for (int i = 0; i < kNodesAtOnce && first_node + i < params.between.network.num_nodes; ++i)
        for (int r = 0; r < num_nvl; ++r)
            mask |= static_cast<uint32_t>(row[(first_node + i) * num_nvl + r] != 0) << (i * kMaxRanks + r);
    return mask;
}

// Where token t goes, as a mask of the same form. Counts its selections in hist, if that is given; records bad ones,
// and layouts that differ.
__device__ inline uint32_t node_mask(const InternodeDispatchParams& params, int t, int first_node, uint32_t* hist) {
    const DispatchParams& p = params.local;
    if (p.topk == 0) return layout_node_mask(params, t, first_node);
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
            uint32_t rank = static_cast<uint32_t>(expert[j]) / experts_per_rank, node = rank / num_nvl - first_node;
            if (node < kNodesAtOnce) mask |= 1u << (node * kMaxRanks + rank % num_nvl);
            if (hist) atomicAdd(&hist[expert[j]], 1);
        }
    }
    if (p.is_token_in_rank && good) {
        uint32_t wrong = mask ^ layout_node_mask(params, t, first_node);
        int place = __ffs(wrong) - 1, node = first_node + place / kMaxRanks;
        if (wrong != 0) keep_bad_selection(p, t, kFirstMaskKey + node * num_nvl + place % kMaxRanks);
    }
    return mask;
}

// One step: the order, among the block's tokens, of this thread's token at each of 32 places. All threads.
__device__ inline void order_tokens(CountShared& shared, uint32_t mask, NodeRows* order) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        uint32_t senders = __ballot_sync(~0u, mask >> i & 1);
        order[i / kMaxRanks].row[i % kMaxRanks] = __popc(senders & ((1u << lane) - 1));
        if (lane == i) shared.warp_counts[warp][i] = __popc(senders);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        int32_t sum = shared.running[threadIdx.x];
        for (int w = 0; w < kWarps; ++w) {
            int32_t count = shared.warp_counts[w][threadIdx.x];
            shared.warp_counts[w][threadIdx.x] = sum;
            sum += count;
        }
        shared.running[threadIdx.x] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        int32_t& place = order[i / kMaxRanks].row[i % kMaxRanks];
        place = mask >> i & 1 ? place + shared.warp_counts[warp][i] : -1;
    }
    __syncthreads();
}

// The ranks of nodes first_node .. first_node + 3 that tokens of this rank get to, as a mask of the same form.
template <class Net>
__device__ inline uint32_t reached_mask(const InternodeDispatchParams& params, int first_node) {
    if (!Routes<Net>::kMaskable) return ~0u;
    int num_nvl = params.local.group.num_ranks;
    uint32_t mask = 0;
    for (int i = 0; i < kNodesAtOnce && first_node + i < params.between.network.num_nodes; ++i)
        for (int r = 0; r < num_nvl; ++r)
            mask |= static_cast<uint32_t>(Routes<Net>::reaches(params.between.network, (first_node + i) * num_nvl + r))
                    << (i * kMaxRanks + r);
    return mask;
}

// Writes token_order of this block's tokens, counted from the block's first, and block_counts; adds to expert_hist.
// hist: num_experts words of shared memory. All threads of the block.
template <class Net>
__device__ inline void count_tokens(const InternodeDispatchParams& params, CountShared& shared, uint32_t* hist) {
    const DispatchParams& p = params.local;
    int num_nodes = params.between.network.num_nodes;
    TokenRange tokens = block_tokens(p.num_tokens);
    for (int e = threadIdx.x; e < p.num_experts; e += kThreads) hist[e] = 0;
    for (int first_node = 0; first_node < num_nodes; first_node += kNodesAtOnce) {
        uint32_t reached = reached_mask<Net>(params, first_node);
        if (threadIdx.x < 32) shared.running[threadIdx.x] = 0;
        __syncthreads();
        for (int first = tokens.begin; first < tokens.end; first += kThreads) {
            int t = first + threadIdx.x;
            uint32_t mask = t < tokens.end ? node_mask(params, t, first_node, first_node == 0 ? hist : nullptr) : 0;
            mask &= reached;
            NodeRows order[kNodesAtOnce];
            order_tokens(shared, mask, order);
#pragma unroll
            for (int i = 0; i < kNodesAtOnce; ++i)
                if (t < tokens.end && first_node + i < num_nodes)
                    at<NodeRows>(p.token_order)[static_cast<size_t>(first_node + i) * p.num_tokens + t] = order[i];
        }
        int place = first_node * kMaxRanks + threadIdx.x;
        if (threadIdx.x < 32 && place < num_nodes * kMaxRanks)
            at<int32_t>(params.between.block_counts)[blockIdx.x * num_nodes * kMaxRanks + place] =
                shared.running[threadIdx.x];
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
        int32_t value = dispatch_word(p, params.between.num_ranks, Routes<Net>::word(params.between.network));
        switch (threadIdx.x) {
            case kNumBlocks: value = gridDim.x; break;
            case kNumSlots: value = params.between.num_slots; break;
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
    int num_blocks = gridDim.x, num_places = b.network.num_nodes * kMaxRanks;
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
        int place = d / g.num_ranks * kMaxRanks + d % g.num_ranks;
        place_blocks_at(b, place, static_cast<int32_t>(before));
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
        check_layout(p, b.num_ranks, words, own_header<Net>(p.group, b, epoch) + kHeaderWords, hist, 0,
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
