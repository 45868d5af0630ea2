// The send half of dispatch: each token once to every rank that holds one of its experts, then a flag for the row.
//
// Tokens go round the blocks. The senders of a block cast a token into shared memory, and one of their warps, the
// courier, has the copy engine take it to its receivers: to the slot with the token's number, so it is under way before
// anything has been counted. Its flag follows and says what it is for: a word for each selection, with the epoch in it.
// A flag's number is that of earlier tokens that go to the same receiver, and a selection's order the number of earlier
// selections of its expert, so every block counts the tokens before its own. The planners, its other warps, do so for
// the first token while the senders fetch and cast it; those of the last block count all and announce.
//
// Over a network rows travel in batches. There a row's slot has the number of its flag, and its selections follow its
// elements.
#pragma once

#include "call.cuh"
#include "dispatch_batches.cuh"
#include "deepep/bulk_copy.cuh"
#include "deepep/fp8.cuh"

namespace deepep::lowlatency {

constexpr int kDispatchSenders = 512;
constexpr int kPlanners = kThreads - kDispatchSenders - 32;  // without the warp that opens the call
constexpr int kCourier = kDispatchSenders / 32 - 1;          // of the senders; plans later tokens too
constexpr int kCountBatch = 4;                               // tokens, or groups of them, that a warp has under way
constexpr int kLaneChannels = 16;                            // that one lane casts
constexpr int kScaleLanes = kScaleChannels / kLaneChannels;  // that share a scale
constexpr int kWarpChannels = 32 * kLaneChannels;
static_assert(kScaleChannels == kFp8ScaleChannels);
constexpr int kDests = kRanks < kMaxTopk ? kRanks : kMaxTopk;  // of a token
constexpr int kPieceChannels = kDispatchSenders / 32 * kWarpChannels;
constexpr int kOpenThreads = kDispatchSenders + 32;  // the senders, and the warp that opens the call
constexpr int kPlannedThreads = 64;                  // the warp that plans the first token, and the courier

struct TokenCounts {
    uint32_t rows[kRanks];        // tokens to each rank
    uint32_t selections[kRanks];  // of its experts
    uint32_t bad;                 // smallest token << 8 | k whose expert does not exist, or ~0
    uint32_t crowded;             // smallest expert that has more of them than a source may have tokens, or ~0
};

// x, y, z and w of a word of a row's flag.
static_assert(kFlagEpoch == 0 && kFlagSelection == 1 && kFlagWeight == 2 && kFlagTag == 3);

// Where the token at hand goes; ranks behind this one first, so that ranks do not all send to the same.
struct TokenPlan {
    int32_t num_dests;
    int32_t dest[kDests];
    uint64_t flag[kDests];  // were the epoch even
    uint64_t row[kDests];   // its slot in the outbox, were the epoch even; with a network
    uint32_t slot[kDests];  // with a network
    uint32_t tag[kDests];   // number of the first selection << kTokenBits | token
    int32_t selection_dest[kMaxTopk];
    uint32_t selection[kMaxTopk];
    float weight[kMaxTopk];
};

struct DispatchSendShared {
    TokenCounts earlier, all;  // of the tokens before the one at hand; of all, in the last block
    TokenPlan plan;
};

__device__ __forceinline__ bool is_courier() { return threadIdx.x / 32 == kCourier; }

// The last block: it has a token to send, and rows to receive, only when there are many.
__device__ __forceinline__ bool is_reporting_block() { return blockIdx.x == gridDim.x - 1; }

__device__ inline void clear_counts(const DispatchParams& p, int thread, int num_threads, uint32_t* hist,
                                    TokenCounts& counts) {
#pragma unroll 1
    for (int e = thread; e < p.num_experts; e += num_threads) hist[e] = 0;
    if constexpr (kIsWide) {
#pragma unroll 1
        for (int r = thread; r < p.group.num_ranks; r += num_threads) counts.rows[r] = counts.selections[r] = 0;
    } else {
        if (thread < kRanks) counts.rows[thread] = counts.selections[thread] = 0;
    }
    if (thread == 0) counts.bad = counts.crowded = ~0u;
}

// Counts a lane's selection. dest: its receiver, or -1. earlier: the lanes with earlier selections of its token. All
// lanes.
__device__ __forceinline__ void count_dest(int dest, uint32_t earlier, TokenCounts& counts) {
    uint32_t same = __match_any_sync(~0u, dest);
    uint32_t rows_begin = __ballot_sync(~0u, dest >= 0 && (same & earlier) == 0);
    if (dest < 0 || threadIdx.x % 32 != __ffs(same) - 1) return;
    atomicAdd(&counts.rows[dest], __popc(same & rows_begin));
    atomicAdd(&counts.selections[dest], __popc(same));
}

// Tokens of which a warp counts the selections: as many whole ones as have a lane for each, kCountBatch times. Not by
// __ldg: such loads may be moved before await_previous_launch.
struct CountBatch {
    int per_warp, mine, k, stride;  // tokens at once; the lane's among them, and its selection; to the warp's next ones
    int64_t expert[kCountBatch];

    __device__ CountBatch(const DispatchParams& p, int thread, int num_threads) {
        int lane = thread % 32;
        per_warp = small_div(32, p.topk), mine = small_div(lane, p.topk), k = lane - mine * p.topk;
        stride = num_threads / 32 * per_warp;
    }

    // The warp's first of tokens that begin there.
    __device__ __forceinline__ int first(int begin, int thread) const { return begin + thread / 32 * per_warp; }

    __device__ __forceinline__ void load(const DispatchParams& p, int from, int end) {
        auto topk_idx = at<const int64_t>(p.topk_idx);
#pragma unroll
        for (int j = 0; j < kCountBatch; ++j) {
            int t = from + j * stride + mine;
            expert[j] = mine < per_warp && t < end ? topk_idx[static_cast<size_t>(t) * p.topk + k] : -1;
        }
    }
};

// Adds tokens [begin, end), and copies their selections unless `copies` is null. batch: the warp's first, loaded.
__device__ __forceinline__ void count_tokens(const DispatchParams& p, CountBatch batch, int begin, int end, int thread,
                                             uint32_t* hist, TokenCounts& counts, int32_t* copies) {
    int lane = thread % 32;
    uint32_t earlier = ((1u << batch.k) - 1) << (lane - batch.k);
#pragma unroll 1
    for (int first = batch.first(begin, thread); first < end;) {
#pragma unroll
        for (int j = 0; j < kCountBatch; ++j) {
            if (first + j * batch.stride >= end) break;
            int64_t expert = batch.expert[j];
            bool valid = is_expert(expert, p.num_experts);
            int e = static_cast<int>(expert), t = first + j * batch.stride + batch.mine;
            if (copies && batch.mine < batch.per_warp && t < end) copies[t * p.topk + batch.k] = e;
            if (valid) atomicAdd(&hist[e], 1);
            uint32_t place = static_cast<uint32_t>(t) << 8 | batch.k;
            if (!valid && expert != -1) atomicMin(&counts.bad, place);
            count_dest(valid ? small_div(e, p.experts_per_rank) : -1, earlier, counts);
        }
        first += kCountBatch * batch.stride;
        if (first < end) batch.load(p, first, end);
    }
}

// The same with nothing loaded, of tokens that a block counts for its second one, or beside those it announces. Out of
// line, where parameters and shared memory are slower to reach.
__device__ __noinline__ void count_more_tokens(const DispatchParams& p, int begin, int end, int thread, int num_threads,
                                               uint32_t* hist, TokenCounts& counts) {
    if (begin >= end) return;
    CountBatch batch(p, thread, num_threads);
    batch.load(p, batch.first(begin, thread), end);
    count_tokens(p, batch, begin, end, thread, hist, counts, nullptr);
}

// The words of a header that say what is wrong with the selections of this rank, if anything is: two of them.
__device__ __noinline__ uint2 status_words(const DispatchParams& p, const TokenCounts& counts, const uint32_t* hist,
                                           int word) {
    bool is_bad = counts.bad != ~0u;
    uint32_t token = is_bad ? counts.bad >> 8 : 0, k = is_bad ? counts.bad & 255 : counts.crowded;
    int64_t value = is_bad ? at<const int64_t>(p.topk_idx)[static_cast<size_t>(token) * p.topk + k] : hist[k];
    switch (word) {
        case kStatus: return {static_cast<uint32_t>(is_bad ? kExpertOutOfRange : kSelectedTooOften), token};
        case kStatusK: return {k, static_cast<uint32_t>(value)};
        default: return {static_cast<uint32_t>(value >> 32), 0};
    }
}

// One block, after its planners have counted all tokens: tells every receiver what comes, in words that carry the epoch
// themselves. A warp for 64 words, two per lane, or where a network takes a header at once, for all of a receiver's.
__device__ inline void announce_dispatch(const DispatchParams& p, const Call& call, const TokenCounts& counts,
                                         const uint32_t* hist, int thread, int num_threads) {
    bool is_odd = (counts.bad & counts.crowded) != ~0u;
    int num_chunks = kHasNetwork ? 1 : (p.header_words + 63) / 64;
#pragma unroll 1
    for (int item = thread / 32; item < p.group.num_ranks * num_chunks; item += num_threads / 32) {
        int chunk = small_div(item, p.group.num_ranks), dest = item - chunk * p.group.num_ranks;
        if (!(call.reached >> dest & 1)) continue;
        uint64_t* header = header_to(p.group, kDispatch, dest, call.epoch);
        const uint32_t* own = hist + dest * p.experts_per_rank;
        int end = kHeaderCounts + p.experts_per_rank;
#pragma unroll 1
        for (int word = chunk * 64 + thread % 32 * 2; word < end; word += num_chunks * 64) {
            uint2 two = {0, 0};
            if (word >= kHeaderCounts) {
                const uint32_t* count = own + word - kHeaderCounts;
                two = {count[0], word + 1 < end ? count[1] : 0};
            } else if (word >= kTopk) {
                two = word == kTopk ? uint2{static_cast<uint32_t>(p.topk), counts.rows[dest]}
                                    : uint2{counts.selections[dest], static_cast<uint32_t>(p.num_tokens)};
            } else {
                if (is_odd) two = status_words(p, counts, hist, word);
                if (word == kStatusValueHigh) two.y = p.row_format;
            }
            store_words(header + word, call.epoch, two.x, two.y);
        }
        if (is_remote(p.group, dest))
            send_cell(p.group, thread % 32 == 0, dest, headers_of(p.group, kDispatch, call.epoch), 0,
                      p.header_words * sizeof(uint64_t));
    }
}
static_assert(kStatus == 0 && kStatusToken == 1 && kStatusK == 2 && kStatusValueLow == 3 && kStatusValueHigh == 4);
static_assert(kFormat == 5 && kTopk == 6 && kNumRows == 7 && kNumSelections == 8 && kNumTokens == 9);

// The lane's 16 channels of a piece of a token: 16 fp8 in the first vector, or 8 bf16 in each.
template <bool kCast>
struct RowPiece {
    Vectors<2> x;

    // Byte offset in the row of x of the lane's first vector. The other one follows, or lies a warp's vectors further
    // on: bf16 is loaded as it is stored.
    __device__ static int offset(int piece) {
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        return (piece * kPieceChannels + warp * kWarpChannels) * 2 + lane * (kCast ? 32 : 16);
    }

    __device__ void load(const DispatchParams& p, int t, int piece) {
        uint64_t row = p.x + static_cast<uint64_t>(t) * p.x_stride;
        x = load_vectors<2, kCast ? 16 : 512>(row + offset(piece), row + p.hidden * 2);
    }

    __device__ void stage(const DispatchParams& p, int piece, uint8_t* row) const {
        int first = offset(piece);
        if (kCast) {
            if (piece * kPieceChannels + static_cast<int>(threadIdx.x / 32) * kWarpChannels >= p.hidden) return;
            Fp8Lane<2> fp8 = cast_fp8(x, p.format != kFp8);
            if (first >= p.hidden * 2) return;
            *reinterpret_cast<uint4*>(row + first / 2) =
                make_uint4(fp8.words[0], fp8.words[1], fp8.words[2], fp8.words[3]);
            auto scales = reinterpret_cast<float*>(row + p.hidden);
            if (threadIdx.x % kScaleLanes == 0) scales[first / (2 * kScaleChannels)] = fp8.scale;
        } else {
            if (first < p.hidden * 2) *reinterpret_cast<uint4*>(row + first) = x.v[0];
            if (first + 512 < p.hidden * 2) *reinterpret_cast<uint4*>(row + first + 512) = x.v[1];
        }
    }
};

// What a warp knows of a token before the tokens before it have been counted: lane k selection k, and where its row
// goes at the k-th rank behind this one; in large groups, at the rank of the selection.
struct PlanAhead {
    int64_t expert = -1;
    float weight = 0;
    int32_t dest = 0;
    uint64_t row = 0;   // the token's slot, or of a remote rank the first slot, were the epoch even
    uint64_t flag = 0;  // the first flag, were the epoch even

    // t < 0: of no token, for the other warps.
    __device__ PlanAhead(const DispatchParams& p, int t) {
        int lane = threadIdx.x % 32;
        if (t < 0) return;
        size_t selection = static_cast<size_t>(t) * p.topk + lane;
        if (lane < p.topk) expert = at<const int64_t>(p.topk_idx)[selection];
        if (lane < p.topk && p.topk_weights) weight = at<const float>(p.topk_weights)[selection];
        if constexpr (kIsWide) {
            dest = max(dest_of_selection(p), 0);
            find_row(p, t);
            return;
        }
        if (lane >= p.group.num_ranks) return;
        dest = p.group.rank + 1 + lane;
        if (dest >= p.group.num_ranks) dest -= p.group.num_ranks;
        find_row(p, t);
    }

    __device__ __forceinline__ void find_row(const DispatchParams& p, int t) {
        row = outgoing(p.group, rows_of(p), dest);
        if (!is_remote(p.group, dest)) row += static_cast<uint64_t>(t) * p.row_stride;
        flag = p.group.heap[dest] + p.flag_offset + p.group.rank * p.flag_rank_stride;
    }

    // The rank that selection k goes to, or -1.
    __device__ __forceinline__ int dest_of_selection(const DispatchParams& p) const {
        return is_expert(expert, p.num_experts) ? small_div(static_cast<int>(expert), p.experts_per_rank) : -1;
    }

    // Whether the token goes to the lane's rank; in one lane for each rank. All lanes.
    __device__ __forceinline__ bool goes(const DispatchParams& p) const {
        int lane = threadIdx.x % 32, dest_of_k = dest_of_selection(p);
        if constexpr (kIsWide) {
            uint32_t same = __match_any_sync(~0u, dest_of_k);
            return dest_of_k >= 0 && lane == __ffs(same) - 1;
        }
        uint32_t dests = __reduce_or_sync(~0u, dest_of_k >= 0 ? 1u << dest_of_k : 0);
        return lane < p.group.num_ranks && (dests >> dest & 1);
    }
};

// How many of the lanes `all` have a rank that lies nearer behind this one than the lane's. All lanes.
__device__ __forceinline__ int nearer_lanes(const Group& g, uint32_t all, int rank) {
    int distance = rank - g.rank - 1, nearer = 0;
    if (distance < 0) distance += g.num_ranks;
#pragma unroll 1
    for (uint32_t left = all; left != 0; left &= left - 1)
        nearer += __shfl_sync(~0u, distance, __ffs(left) - 1) < distance;
    return nearer;
}

// One warp; the tokens before t have been counted.
__device__ inline void plan_token(const DispatchParams& p, int t, const PlanAhead& ahead, const uint32_t* hist,
                                  const TokenCounts& counts, TokenPlan& plan) {
    int lane = threadIdx.x % 32;
    int dest_of_k = ahead.dest_of_selection(p);
    bool valid = dest_of_k >= 0, goes = ahead.goes(p);
    int e = valid ? static_cast<int>(ahead.expert) : -1;
    uint32_t all = __ballot_sync(~0u, goes);
    int nearer = kIsWide ? nearer_lanes(p.group, all, ahead.dest) : 0;
    if (goes) {
        int i = kIsWide ? nearer : __popc(all & ((1u << lane) - 1));
        uint32_t slot = counts.rows[ahead.dest];
        plan.dest[i] = ahead.dest;
        plan.flag[i] = ahead.flag + slot * p.flag_stride;
        if constexpr (kHasNetwork) {
            plan.row[i] = ahead.row + static_cast<uint64_t>(slot) * p.row_stride;
            plan.slot[i] = slot;
        }
        plan.tag[i] = counts.selections[ahead.dest] << kTokenBits | t;
    }
    if (lane == 0) plan.num_dests = __popc(all);
    uint32_t before = __popc(__match_any_sync(~0u, e) & ((1u << lane) - 1));  // of the same expert by the same token
    if (lane < p.topk) {
        plan.selection[lane] = valid ? (e - dest_of_k * p.experts_per_rank) << kOrderBits | (hist[e] + before) : ~0u;
        plan.selection_dest[lane] = dest_of_k;
        plan.weight[lane] = ahead.weight;
    }
    if constexpr (kHasNetwork) {
        uint32_t same = __match_any_sync(~0u, dest_of_k), number = __popc(same & ((1u << lane) - 1));
        if (valid)
            at<uint32_t>(p.sent_items)[static_cast<size_t>(t) * p.topk + lane] =
                (counts.selections[dest_of_k] + number) << kTokenBits | counts.rows[dest_of_k];
    }
}

// racecheck (compute-sanitizer 2025.3) follows what one warp does and another does behind their barrier only if the
// second has passed no fewer barriers before than the first, and of what placers read and then overwrite, if all have
// passed as many. So the senders pass as many as the planners, while their loads are under way; and so does the warp
// that opens the call, with the barrier at which it is open.
__device__ __forceinline__ void keep_step_with_planners() {
    if (threadIdx.x >= kDispatchSenders) return team_barrier(kBarrierSend2, 32);
    team_barrier(kBarrierSend, kDispatchSenders);
    team_barrier(kBarrierSend, kDispatchSenders);
}

// The planners of every block, before the call is open. all_hist: of the block that announces.
__device__ inline void plan_first(const DispatchParams& p, int thread, uint32_t* hist, uint32_t* all_hist,
                                  DispatchSendShared& shared) {
    int t = blockIdx.x;
    bool has_token = t < p.num_tokens, announces = is_reporting_block(), plans = has_token && thread < 32;
    CountBatch before(p, thread, kPlanners);
    int end = announces ? p.num_tokens : has_token ? t : 0;
    before.load(p, before.first(0, thread), end);
    PlanAhead ahead(p, plans ? t : -1);
    if (has_token) clear_counts(p, thread, kPlanners, hist, shared.earlier);
    if (announces) clear_counts(p, thread, kPlanners, all_hist, shared.all);
    team_barrier(kBarrierPlan, kPlanners);
    count_tokens(p, before, 0, end, thread, announces ? all_hist : hist, announces ? shared.all : shared.earlier,
                 announces ? at<int32_t>(p.sent_topk_idx) : nullptr);
    if (announces && has_token) count_more_tokens(p, 0, t, thread, kPlanners, hist, shared.earlier);
    team_barrier(kBarrierPlan, kPlanners);
    if (plans) {
        plan_token(p, t, ahead, hist, shared.earlier, shared.plan);
        __syncwarp();
        team_arrive(kBarrierPlanned, kPlannedThreads);
    }
    if (!announces || p.num_tokens * p.topk <= p.max_tokens) return;
#pragma unroll 1
    for (int e = thread; e < p.num_experts; e += kPlanners)
        if (all_hist[e] > p.max_tokens) atomicMin(&shared.all.crowded, e);
}

// The courier, once the call is open: elements and scales of the token that the block has staged, to all receivers but
// remote ones, whose slot is not known yet. goes: whether to the lane's rank.
__device__ __forceinline__ void send_elements(const DispatchParams& p, const Call& call, const PlanAhead& ahead,
                                              bool goes, const uint8_t* staged) {
    if (!goes || !(call.reached >> ahead.dest & 1) || is_remote(p.group, ahead.dest)) return;
    uint64_t row = ahead.row + (call.epoch & 1) * p.row_parity_stride;
    bulk_store(at<void>(row), staged, p.selections_offset);
    bulk_commit();
}

// They come before whatever the courier stores from then on.
__device__ __forceinline__ void await_elements() {
    bulk_wait_written();
    __syncwarp();
    fence_sys();  // release, with the stores of send_flags; pairs with the acquire in receive_rows
}

// The courier, with the plan: the row for remote receivers, into the outbox.
__device__ __noinline__ void send_remote_rows(const DispatchParams& p, const Call& call, const TokenPlan& plan,
                                              const uint8_t* staged) {
    int lane = threadIdx.x % 32, dest = lane < plan.num_dests ? plan.dest[lane] : 0;
    bool remote = lane < plan.num_dests && (call.reached >> dest & 1) && is_remote(p.group, dest);
    if (!__any_sync(~0u, remote)) return;
    uint64_t parity_offset = (call.epoch & 1) * p.row_parity_stride;
    if (remote) {
        uint64_t row = plan.row[lane] + parity_offset;
        bulk_store(at<void>(row), staged, p.selections_offset);
        bulk_commit();
        *at<uint32_t>(row + tag_offset(p)) = plan.tag[lane];
    }
#pragma unroll 1
    for (int i = lane; i < plan.num_dests * p.topk; i += 32) {
        int to = small_div(i, p.topk), k = i - to * p.topk, rank = plan.dest[to];
        if (!(call.reached >> rank & 1) || !is_remote(p.group, rank)) continue;
        uint64_t row = plan.row[to] + parity_offset;
        at<uint32_t>(row + p.selections_offset)[k] = plan.selection_dest[k] == rank ? plan.selection[k] : ~0u;
        if (p.topk_weights) at<float>(row + p.weights_offset)[k] = plan.weight[k];
    }
    if (remote) bulk_wait_written();
    __syncwarp();
    fence_sys();  // release, with the signal in count_slots; pairs with the acquire in receive_rows
    count_slots(p, call, remote, dest, remote ? batch_of(plan.slot[lane]) : 0, kOneRow);
}

// The courier, with the plan: the flags of what send_elements has sent. awaits: whether await_elements is still to be
// done, as late as can be.
__device__ __forceinline__ void send_flags(const DispatchParams& p, const Call& call, const TokenPlan& plan,
                                           bool awaits) {
    uint64_t parity_offset = (call.epoch & 1) * p.flag_parity_stride;
    int num_flags = plan.num_dests * p.topk;
#pragma unroll 1
    for (int first = 0; first == 0 || first < num_flags; first += 32, awaits = false) {
        int i = first + threadIdx.x % 32;
        int to = small_div(i, p.topk), k = i - to * p.topk, dest = i < num_flags ? plan.dest[to] : -1;
        bool mine = dest >= 0 && (call.reached >> dest & 1) && !is_remote(p.group, dest);
        uint64_t flag = 0;
        uint4 word = {};
        if (mine) {
            uint32_t selection = plan.selection_dest[k] == dest ? plan.selection[k] : ~0u;
            flag = plan.flag[to] + parity_offset;
            word = make_uint4(call.epoch, selection, __float_as_uint(plan.weight[k]), plan.tag[to]);
        }
        if (awaits) await_elements();
        if (mine) store_relaxed_sys_b128(at<uint4>(flag) + k, word);
    }
}

// The senders of every block, from the launch's beginning: a block's first token is staged when the call is open.
template <bool kCast>
__device__ inline void send_tokens(const DispatchParams& p, const Call& call, uint32_t* hist,
                                   DispatchSendShared& shared, uint8_t* staged) {
    TokenPlan& plan = shared.plan;
    bool courier = is_courier();
#pragma unroll 1
    for (int t = blockIdx.x, counted = t;; counted = t, t += gridDim.x) {
        bool is_first = t == blockIdx.x, has_token = t < p.num_tokens;
        if (!is_first && !has_token) return;
        RowPiece<kCast> row;
        if (has_token) row.load(p, t, 0);
        PlanAhead ahead(p, courier && has_token ? t : -1);
        if (is_first) {
            keep_step_with_planners();
        } else {
            team_barrier(kBarrierSend, kDispatchSenders);  // the courier is done with the last token
        }
        bool goes = courier && has_token && ahead.goes(p);
        if (has_token) {
#pragma unroll 1
            for (int piece = 0;;) {
                row.stage(p, piece, staged);
                if (++piece * kPieceChannels >= p.hidden) break;
                row.load(p, t, piece);
            }
            fence_async_proxy_shared();
        }
        if (is_first) {
            team_barrier(kBarrierOpen, kOpenThreads);  // the call is open
            if (!has_token) return;
        } else {
            team_barrier(kBarrierSend, kDispatchSenders);
        }
        if (courier) send_elements(p, call, ahead, goes, staged);
        __syncwarp();
        if (is_first) {
            if (courier) team_barrier(kBarrierPlanned, kPlannedThreads);
        } else {
            if (courier) await_elements();
            count_more_tokens(p, counted, t, threadIdx.x, kDispatchSenders, hist, shared.earlier);
            team_barrier(kBarrierSend, kDispatchSenders);
            if (courier) plan_token(p, t, ahead, hist, shared.earlier, plan);
            __syncwarp();
        }
        if (!courier) continue;
        send_flags(p, call, plan, is_first);
        if constexpr (kHasNetwork) send_remote_rows(p, call, plan, staged);
    }
}

}  // namespace deepep::lowlatency
