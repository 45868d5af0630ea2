// Second phase of dispatch: headers go out and come in, the call is judged, the rank and its host learn the counts.
#pragma once

#include "dispatch_layout.cuh"
#include "exchange.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// Word `lane` of what this rank says of a new or cached dispatch among num_ranks ranks. One warp.
__device__ inline int32_t dispatch_word(const DispatchParams& p, int num_ranks, uint32_t masked) {
    LocalState* state = state_of(p.group);
    int lane = threadIdx.x % 32;
    int32_t value = 0;
    switch (lane) {
        case kOp: value = p.cached ? kOpCachedDispatch : kOpDispatch; break;
        case kNumExperts: value = p.num_experts; break;
        case kHidden: value = p.hidden; break;
        case kRowBytes: value = p.row_stride; break;
        case kTopk: value = p.topk; break;
        case kNumScales: value = p.num_scales; break;
        case kHasWeights: value = p.topk_weights != 0; break;
        case kRowLimit: value = p.row_limit; break;
        case kMasked: value = masked; break;
    }
    if (p.cached) return handle_word(p.handle_epoch, lane, value, masked);
    uint64_t bad = state->bad_selection;
    if (bad == 0) return value;
    int token = static_cast<int>(~bad >> kSelectionBits), k = static_cast<int>(~bad & ((1 << kSelectionBits) - 1));
    bool mask = k >= kFirstMaskKey;
    if (mask) k -= kFirstMaskKey;
    int64_t seen = mask ? at<const uint8_t>(p.is_token_in_rank)[static_cast<size_t>(token) * num_ranks + k] != 0
                        : at<const int64_t>(p.topk_idx)[static_cast<size_t>(token) * p.topk + k];
    __syncwarp();
    state->bad_selection = 0;
    return status_word(lane, value, mask ? kLayoutMask : kExpertOutOfRange, token, k, seen);
}

// Counts this rank's rows to another. One warp.
__device__ __forceinline__ void fill_count(const DispatchParams& p, HeaderTable& table, int rank) {
    int lane = threadIdx.x % 32;
    int32_t count = 0;
    if (!p.cached)
        for (int b = lane; b < static_cast<int>(gridDim.x); b += 32)
            count += state_of(p.group)->block_counts[b][rank];
    count = __reduce_add_sync(~0u, count);
    if (lane == 0) table.mine[kFirstCount + rank] = count;
}

constexpr int kWordsWarp = kIsWide ? kWarps - 1 : kMaxRanks;  // the warps before it count

// All threads of the announcing block.
__device__ inline void fill_dispatch_header(const DispatchParams& p, HeaderTable& table, uint32_t masked) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == kWordsWarp) {
        int32_t value = dispatch_word(p, p.group.num_ranks, masked);
        if (lane < kFirstCount) table.mine[lane] = value;
    } else if (warp < kMaxRanks) {
        fill_count(p, table, warp);
        if constexpr (kIsWide)
            for (int rank = warp + kWordsWarp; rank < kMaxRanks; rank += kWordsWarp) fill_count(p, table, rank);
    }
    __syncthreads();
}

// In shared memory: an expert whose count is wrong, or num_experts + a rank.
__device__ inline int& first_wrong_count() {
    __shared__ int first_wrong;
    return first_wrong;
}

// The ranks of one node that are left out.
struct Absent {
    const OneNode& node;

    __device__ bool operator()(int rank) const { return !node.takes_part(rank); }
};

// Holds the counts that a layout claims against counts of rows [num_ranks] and hist, but for those of rows to ranks
// that are left out, of which there are none. The outcome goes into words, in shared memory. All threads of the
// announcing block.
template <class LeftOut>
__device__ inline void check_layout(const DispatchParams& p, int num_ranks, int32_t* words, const int32_t* counts,
                                    const uint32_t* hist, LeftOut is_left_out) {
    int& first_wrong = first_wrong_count();
    if (p.tokens_per_rank == 0) return;
    auto per_rank = at<const int32_t>(p.tokens_per_rank), per_expert = at<const int32_t>(p.tokens_per_expert);
    int num_checks = p.num_experts + num_ranks;
    if (threadIdx.x == 0) first_wrong = num_checks;
    __syncthreads();
    for (int i = threadIdx.x; i < num_checks; i += kThreads) {
        int rank = i - p.num_experts;
        bool good = rank >= 0 ? per_rank[rank] == counts[rank] || is_left_out(rank)
                              : !per_expert || per_expert[i] == static_cast<int32_t>(hist[i]);
        if (!good) atomicMin(&first_wrong, i);
    }
    bool unset = words[kStatus] == kOk;  // read by all before one thread writes it
    __syncthreads();
    if (threadIdx.x == 0 && first_wrong < num_checks && unset) {
        int rank = first_wrong - p.num_experts;
        bool of_rank = rank >= 0;
        words[kStatus] = of_rank ? kLayoutRankCount : kLayoutExpertCount;
        words[kStatusToken] = of_rank ? rank : first_wrong;
        words[kStatusK] = of_rank ? per_rank[rank] : per_expert[first_wrong];
        words[kStatusValueLow] = of_rank ? counts[rank] : static_cast<int32_t>(hist[first_wrong]);
        words[kStatusValueHigh] = 0;
    }
    __syncthreads();
}

// The block that laid out its tokens last announces them.
__device__ inline void announce_dispatch(const DispatchParams& p, const OneNode& node, uint32_t epoch,
                                         HeaderTable& table) {
    auto hist = at<uint32_t>(p.expert_hist);
    fill_dispatch_header(p, table, state_of(p.group)->masked);
    check_layout(p, p.group.num_ranks, table.mine, table.mine + kFirstCount, hist, Absent{node});
    send_header(node, epoch, table, hist, p.num_experts / p.group.num_ranks);
    __syncthreads();
    for (int e = threadIdx.x; e < p.num_experts; e += kThreads) hist[e] = 0;
}

// Rows to each rank of a large node, in shared memory.
struct RowSums {
    unsigned long long rows[kMaxRanks];
    int32_t before[kMaxRanks];  // of them, those of lower ranks than this one
};

__device__ inline RowSums& row_sums() {
    __shared__ RowSums sums;
    return sums;
}

// Sums the counts of a large node, which lie behind the words of its headers. All threads, of which each takes some
// sources for one rank. False: a count did not come, which is recorded.
__device__ inline bool sum_rows(const OneNode& node, uint32_t epoch, RowSums& sums) {
    const Group& g = node.g;
    if (threadIdx.x < kMaxRanks) sums.rows[threadIdx.x] = sums.before[threadIdx.x] = 0;
    __syncthreads();
    bool arrived = true;
    int parts = blockDim.x / g.num_ranks, dest = threadIdx.x % g.num_ranks, part = threadIdx.x / g.num_ranks;
    int32_t rows = 0, before = 0;
    for (int s = part; s < g.num_ranks && part < parts; s += parts) {
        if (!node.takes_part(s)) continue;
        uint64_t seen;
        const uint64_t* word = header_slot(g, g.rank, s, epoch) + kFirstCount + dest;
        arrived &= await_word(node, epoch, g.first_rank + s, kPhaseHeader, word, seen);
        rows += word_value(seen);
        if (s < g.rank) before += word_value(seen);
    }
    atomicAdd(&sums.rows[dest], static_cast<unsigned long long>(rows));
    atomicAdd(&sums.before[dest], before);
    return __syncthreads_and(arrived);
}

// Whether all ranks announce a dispatch, for others send no counts. All threads, which find the same.
__device__ inline bool all_dispatch(const OneNode& node, const HeaderTable& table) {
    bool all = true;
    for (int s = 0; s < node.g.num_ranks; ++s) all &= table.of[s][kOp] == kOpDispatch || !node.takes_part(s);
    return all;
}

// What place_rows does, given the sums, which there are unless headers differ. One warp.
__device__ inline void place_summed_rows(const Group& g, HeaderTable& table, Fault& fault) {
    if (fault.code != kOk) return;
    const RowSums& sums = row_sums();
    for (int round = 0; round < kRounds; ++round) {
        int rank = round * 32 + threadIdx.x % 32;
        bool mine = rank < g.num_ranks;
        int64_t rows = mine ? static_cast<int64_t>(sums.rows[rank]) : 0;
        uint32_t full = __ballot_sync(~0u, mine && rows > table.of[rank % kMaxRanks][kRowLimit]);
        if (fault.code == kOk && full != 0) {
            fault.code = kTooManyRows;
            fault.rank = round * 32 + __ffs(full) - 1;
            fault.expected = table.of[fault.rank][kRowLimit];
            fault.seen = __shfl_sync(~0u, rows, fault.rank % 32);
        }
        if (mine) table.row_base[rank] = sums.before[rank];
    }
    if (threadIdx.x == 0 && fault.code == kOk) table.num_rows = static_cast<int32_t>(sums.rows[g.rank]);
}

// Rows that each rank receives against what it can take; lane d places this rank's tokens at rank d. One warp.
__device__ inline void place_rows(const Group& g, HeaderTable& table, Fault& fault) {
    if constexpr (kIsWide) {
        place_summed_rows(g, table, fault);
        return;
    }
    int lane = threadIdx.x % 32, before = 0;
    int64_t rows = 0;
    if (lane < g.num_ranks)
        for (int s = 0; s < g.num_ranks; ++s) {
            int32_t count = table.of[s][kHeaderCounts + lane];
            rows += count;
            if (s < g.rank) before += count;
        }
    bool fits = lane >= g.num_ranks || rows <= table.of[lane][kRowLimit];
    uint32_t full = __ballot_sync(~0u, !fits);
    if (fault.code == kOk && full != 0) {
        fault.code = kTooManyRows;
        fault.rank = __ffs(full) - 1;
        fault.expected = table.of[fault.rank][kRowLimit];
        fault.seen = __shfl_sync(~0u, rows, fault.rank);
    }
    if (lane < g.num_ranks) table.row_base[lane] = before;
    if (lane == g.rank) table.num_rows = fault.code == kOk ? static_cast<int32_t>(rows) : 0;
}

// All threads of every block: waits for the headers and fills in the table's verdict, num_rows and row_base.
__device__ inline void judge_dispatch(const DispatchParams& p, const OneNode& node, uint32_t epoch,
                                      HeaderTable& table) {
    const Group& g = p.group;
    if (threadIdx.x == 0) table.num_rows = 0;
    bool arrived = read_headers(node, epoch, table);
    if constexpr (kIsWide)
        if (arrived && !p.cached && all_dispatch(node, table)) arrived = sum_rows(node, epoch, row_sums());
    if (threadIdx.x < 32) {
        Fault fault;
        if (arrived) fault = judge_headers(node, table);
        if (arrived && !p.cached) place_rows(g, table, fault);
        if (threadIdx.x == 0) {
            if (fault.code != kOk) record_fault(g, epoch, fault);
            table.verdict = arrived ? fault.code : kTimeout;
        }
    }
    __syncthreads();
}

// Where the headers of a dispatch hold the counts that concern this rank.
struct CountWords {
    int num_sources;
    int rows;          // word of the rows that a source sends to this rank
    int first_expert;  // word of the selections of this rank's first expert
    int num_experts;
    bool of_node;  // all sources are on this node: what this rank sends to each of them is kept too
};

// One warp of one block, beside the copies: counts for the consumer on the device and for the host.
template <class Others>
__device__ inline void report_counts(const DispatchParams& p, const Others& others, uint32_t epoch, uint32_t verdict,
                                     int num_rows, CountWords words) {
    const Group& g = p.group;
    auto status = at<StatusBlock>(g.status);
    int lane = threadIdx.x % 32;
    bool ok = verdict == kOk;
    int32_t expanded = 0;
    for (int e = lane; e < words.num_experts; e += 32) {
        int32_t count = 0;
        for (int s = 0; s < words.num_sources && ok; ++s) {
            if (!others.is_source(s)) continue;
            const uint64_t* word = header_slot(g, g.rank, s, epoch) + words.first_expert + e;
            uint64_t seen;
            int peer = words.of_node ? g.first_rank + s : s;
            count += await_word(others, epoch, peer, kPhaseHeader, word, seen) ? word_value(seen) : 0;
        }
        int32_t aligned = (count + p.expert_alignment - 1) / p.expert_alignment * p.expert_alignment;
        expanded += aligned;
        if (p.out_raw_expert_counts) at<int32_t>(p.out_raw_expert_counts)[e] = count;
        if (p.host_expert_counts) at<volatile int32_t>(p.host_expert_counts)[e] = aligned;
    }
    expanded = __reduce_add_sync(~0u, expanded);
    for (int s0 = 0, before = 0; s0 <= words.num_sources && p.out_source_rows; s0 += 32) {
        int s = s0 + lane;
        bool sends = s < words.num_sources && ok && others.is_source(s);
        int32_t rows = sends ? header_word(g, s, words.rows, epoch) : 0;
        int32_t end = before + inclusive_sum(rows);
        if (s <= words.num_sources) at<int32_t>(p.out_source_rows)[s] = end - rows;
        before = __shfl_sync(~0u, end, 31);
    }
    if (p.out_source_rows && words.of_node && lane < words.num_sources && ok) {
        auto sent = at<int32_t>(p.out_source_rows) + words.num_sources + 1 + lane * 2;
        sent[0] = 0;
        for (int i = 0; i < g.rank; ++i)
            if (others.is_source(i)) sent[0] += header_word(g, i, kHeaderCounts + lane, epoch);
        sent[1] = header_word(g, g.rank, kHeaderCounts + lane, epoch);
    }
    if (lane == 0) {
        if (p.out_num_rows) *at<int32_t>(p.out_num_rows) = num_rows;
        status->num_rows = num_rows;
        status->num_expanded_rows = expanded;
        if (ok && p.expanded_limit > 0 && expanded > p.expanded_limit) {
            Fault fault;
            fault.code = kTooManyExpanded;
            fault.rank = g.first_rank + g.rank;
            fault.expected = p.expanded_limit;
            fault.seen = expanded;
            record_fault(g, epoch, fault);
        }
    }
    fence_sys();
    __syncwarp();
    // release; pairs with the host's acquire of `ready`. The counts above come before it.
    if (lane == 0) store_release_sys(&status->ready, pack_word(epoch, verdict));
}

}  // namespace deepep::normal
