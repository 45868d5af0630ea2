// The send half of combine: each row an expert has computed goes to the slot of its token and selection at the token's
// owner, in parts that are flagged by themselves.
#pragma once

#include "bf16.cuh"
#include "call.cuh"
#include "logfmt.cuh"

namespace deepep::lowlatency {

constexpr int kCombineSenders = 512;
constexpr int kSendTeams = 2;
constexpr int kSendTeamThreads = kCombineSenders / kSendTeams;
constexpr int kStoreWarps = kSendTeamThreads / 32 - 1;  // of a team; its last warp flags what they have stored
constexpr int kChunkChannels = 256;  // a warp's vectors
constexpr int kPartChunks = kPartChannels / kChunkChannels;
constexpr int kLogPartBytes = kPartChannels / kLogChannels * kLogBlockBytes;
constexpr int kLogStageBytes = (kLogPartBytes + 15) / 16 * 16 + 16;
static_assert(kLogPartBytes % 16 == 0 && kPartChannels % kChunkChannels == 0);
static_assert(kLogSharedBytes == kSendTeams * kStoreWarps * kLogStageBytes);

// Where the row of a token's selection lies at its owner, and the flag of a part of it.
__device__ __forceinline__ uint64_t slot_row(const CombineParams& p, int owner, uint32_t slot, uint32_t epoch) {
    return p.group.heap[owner] + p.row_offset + (epoch & 1) * p.row_parity_stride + slot * p.row_stride;
}

__device__ __forceinline__ uint64_t flag_offset(const CombineParams& p, uint32_t slot, int part, uint32_t epoch) {
    return p.flag_offset + (epoch & 1) * p.flag_parity_stride + slot * p.flag_row_stride +
           part * kFlagWords * sizeof(uint32_t);
}

__device__ __forceinline__ uint32_t* slot_flag(const CombineParams& p, int owner, uint32_t slot, int part,
                                               uint32_t epoch) {
    return at<uint32_t>(p.group.heap[owner], flag_offset(p, slot, part, epoch));
}

// Where to store the row for its owner: there, or in this rank's outbox.
__device__ __forceinline__ uint64_t outgoing_row(const CombineParams& p, int owner, uint32_t slot, uint32_t epoch) {
    if (!is_remote(p.group, owner)) return slot_row(p, owner, slot, epoch);
    return p.group.heap[p.group.rank] + p.outbox_row_offset + owner * p.outbox_owner_stride +
           (epoch & 1) * p.row_parity_stride + slot * p.row_stride;
}

// The smallest token * topk + k that names no expert, or ~0, of those that the warp looks at. All receivers of one
// block.
__device__ inline uint32_t find_bad_selection(const CombineParams& p, int thread, int num_threads) {
    auto topk_idx = at<const int64_t>(p.topk_idx);
    uint32_t bad = ~0u;
#pragma unroll 4
    for (int i = thread; i < p.num_tokens * p.topk; i += num_threads)
        if (topk_idx[i] != -1 && !is_expert(topk_idx[i], p.num_experts)) bad = min(bad, static_cast<uint32_t>(i));
    return __reduce_min_sync(~0u, bad);
}

// One warp of one block, lane by receiver and pair of words.
__device__ inline void announce_combine(const CombineParams& p, const Call& call, const Run& run, uint32_t present,
                                        uint32_t bad) {
    constexpr int kPairs = kCombineHeaderWords / 2;
    constexpr int kAtOnce = 32 / kPairs;
    int lane = threadIdx.x % 32, word = lane % kPairs * 2;
    bool good = bad == ~0u;
    int64_t value = good ? 0 : at<const int64_t>(p.topk_idx)[bad];
#pragma unroll 1
    for (int first_dest = 0; first_dest < (kRanks > kAtOnce ? p.group.num_ranks : 1); first_dest += kAtOnce) {
        int dest = first_dest + lane / kPairs;
        bool reaches = dest < p.group.num_ranks && (call.reached >> dest & 1);
        uint32_t first = 0, second = 0;
        switch (word) {
            case kDispatchEpoch: first = run.dispatch_epoch, second = p.row_format; break;
            case kHasRows: first = present >> dest & 1, second = good ? kOk : kExpertOutOfRange; break;
            case kCombineToken: first = good ? 0 : bad / p.topk, second = good ? 0 : bad % p.topk; break;
            case kCombineValueLow:
                first = static_cast<uint32_t>(value), second = static_cast<uint32_t>(value >> 32);
                break;
        }
        if (reaches) store_words(header_to(p.group, kCombine, dest, call.epoch) + word, call.epoch, first, second);
        send_cell(p.group, reaches && word == 0, dest, headers_of(p.group, kCombine, call.epoch), 0,
                  kCombineHeaderWords * sizeof(uint64_t));
    }
}

// A part of a row of x, 8 channels per lane and chunk. What is encoded comes through few registers: a chunk is loaded
// while the last one is encoded.
template <bool kLog>
struct CombinePart {
    static constexpr int kHeld = kLog ? 1 : kPartChunks;
    static constexpr int kStride = kChunkChannels * 2;

    Vectors<kHeld> x;
    uint64_t from, end;

    __device__ void load(uint64_t row, int num_channels) {
        from = row + threadIdx.x % 32 * 16;
        end = row + num_channels * 2;
        x = load_vectors<kHeld, kStride>(from, end);
    }

    __device__ void store(uint64_t to, int num_channels) const {
        int first = threadIdx.x % 32 * 16;
#pragma unroll
        for (int c = 0; c < kHeld; ++c)
            if (first + c * kStride < num_channels * 2) *at<uint4>(to + first + c * kStride) = x.v[c];
    }

    // stage: kLogStageBytes of the warp's own.
    __device__ void encode(uint64_t to, int num_channels, uint8_t* stage) {
        int lane = threadIdx.x % 32;
#pragma unroll 1
        for (int c = 0; c < kPartChunks; ++c) {
            uint4 now = x.v[0];
            from += kStride;
            x = load_vectors<kHeld, kStride>(from, end);
            int block = c * (kChunkChannels / kLogChannels) + lane / kLogLanes;
            encode_log(now, stage + block * kLogBlockBytes, block * kLogChannels < num_channels);
        }
        __syncwarp();
        for (int i = lane * 16; i < num_channels / kLogChannels * kLogBlockBytes; i += 512)
            *at<uint4>(to + i) = *reinterpret_cast<const uint4*>(stage + i);
        __syncwarp();
    }
};

// What a team's warps have stored in a round, to be flagged: one round is flagged while the next is stored.
struct SendShared {
    uint32_t* flags[kSendTeams][2][kStoreWarps];  // null: nothing, or for a remote owner
    struct Remote {
        int32_t owner;  // -1: nothing, or not for a remote owner
        uint32_t slot;
        int32_t part;
    } remote[kHasNetwork ? kSendTeams : 1][2][kHasNetwork ? kStoreWarps : 1];
};

__device__ __forceinline__ void send_barrier(int team) { team_barrier(kBarrierSend + team, kSendTeamThreads); }

// Where a part begins in a row.
template <bool kLog>
__device__ __forceinline__ uint64_t part_offset(int part) {
    return part * static_cast<uint64_t>(kLog ? kLogPartBytes : kPartChannels * 2);
}

// A team's last warp, lane by warp that has stored: sends the parts of remote owners.
template <bool kLog>
__device__ __forceinline__ void send_round(const CombineParams& p, const Call& call, const SendShared::Remote* remote) {
    SendShared::Remote r = remote ? *remote : SendShared::Remote{-1, 0, 0};
    bool active = r.owner >= 0;
    int owner = active ? r.owner : 0, num_channels = min(kPartChannels, p.hidden - r.part * kPartChannels);
    uint64_t to = p.row_offset + (call.epoch & 1) * p.row_parity_stride + r.slot * p.row_stride;
    send_flagged(p.group, active, owner, outgoing_row(p, owner, r.slot, call.epoch) + part_offset<kLog>(r.part),
                 to + part_offset<kLog>(r.part),
                 kLog ? num_channels / kLogChannels * kLogBlockBytes : num_channels * 2,
                 flag_offset(p, r.slot, r.part, call.epoch), call.epoch);
}

// A team's last warp: one fence for a round, because a block's fences wait for one another.
template <bool kLog>
__device__ inline void flag_rounds(const CombineParams& p, const Call& call, int team, int num_rounds,
                                   const SendShared& shared) {
    int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int round = 0; round < num_rounds; ++round) {
        send_barrier(team);
        uint32_t* flag = lane < kStoreWarps ? shared.flags[team][round & 1][lane] : nullptr;
        if (kHasNetwork) send_round<kLog>(p, call, lane < kStoreWarps ? &shared.remote[team][round & 1][lane] : nullptr);
        if (__ballot_sync(~0u, flag != nullptr) == 0) continue;
        fence_sys();  // release, with the store below; pairs with the acquire in sum_chunk
        if (flag) store_relaxed_sys(flag, call.epoch);
    }
}

// The part and the owner that a group of the deal stands for; nearest owners behind this rank first.
struct Errand {
    int part, owner;

    __device__ Errand(const Group& g, int group) : part(small_div(group, g.num_ranks)) {
        owner = g.rank + 1 + group - part * g.num_ranks;
        if (owner >= g.num_ranks) owner -= g.num_ranks;
    }
    __device__ int first_channel() const { return part * kPartChannels; }
    __device__ int num_channels(const CombineParams& p) const { return min(kPartChannels, p.hidden - first_channel()); }
};

__device__ __forceinline__ uint2 load_selection(const CombineParams& p, int owner, int item) {
    int capacity = p.max_tokens * p.max_topk;
    return item < capacity ? at<const uint2>(p.selections)[static_cast<int64_t>(owner) * capacity + item] : uint2{};
}

// The senders of every block, from the launch's beginning: a warp's first row is under way when the call is open. Rows
// go in the order of their tokens, to all owners at once, so that owners can begin to sum.
template <bool kLog>
__device__ inline void send_rows(const CombineParams& p, const Call& call, SendShared& shared, uint8_t* stages) {
    const Group& g = p.group;
    int team = threadIdx.x / kSendTeamThreads, warp = threadIdx.x % kSendTeamThreads / 32, lane = threadIdx.x % 32;
    int store_warp = team * kStoreWarps + warp;
    int num_groups = g.num_ranks * ((p.hidden + kPartChannels - 1) / kPartChannels);
    Deal deal(num_groups, store_warp, kSendTeams * kStoreWarps);
    int num_selections = at<const Bank>(p.bank)->num_selections[lane % kRanks];
    uint2 next = load_selection(p, Errand(g, deal.group).owner, deal.item);  // a Selection, if there is one
    // As many rounds for all warps, which meet at barriers.
    int most = __reduce_max_sync(~0u, lane < g.num_ranks ? num_selections : 0);
    int rounds_per_group = small_div(most + deal.next_item - 1, deal.next_item);
    int groups_per_warp = small_div(num_groups + deal.next_group - 1, deal.next_group);
    if (warp == kStoreWarps) {
        __syncthreads();
        flag_rounds<kLog>(p, call, team, rounds_per_group * groups_per_warp, shared);
        return;
    }
    Errand errand(g, deal.group);
    int num_mine = __shfl_sync(~0u, num_selections, errand.owner);
    if (deal.group >= num_groups) num_mine = 0;
    int item = deal.item;
    CombinePart<kLog> row;
    auto load = [&](uint2 selection) {
        uint64_t x = p.x + (selection.x >> kRowBits) * p.x_expert_stride +
                     (selection.x & ((1 << kRowBits) - 1)) * p.x_row_stride;
        row.load(x + errand.first_channel() * 2, errand.num_channels(p));
    };
    if (item < num_mine) load(next);
    __syncthreads();  // the call is open
#pragma unroll 1
    for (int i = 0, round = 0, group = deal.group; i < groups_per_warp; ++i) {
#pragma unroll 1
        for (int j = 0; j < rounds_per_group; ++j, ++round) {
            uint2 selection = next;
            bool sends = item < num_mine;
            if (sends && round != 0) load(selection);
            item += deal.next_item;
            next = load_selection(p, errand.owner, item);
            sends = sends && (call.reached >> errand.owner & 1);
            uint32_t slot = (selection.y >> kTopkBits) * p.max_topk + (selection.y & (kMaxTopk - 1));
            if (sends) {
                uint64_t to = outgoing_row(p, errand.owner, slot, call.epoch) + part_offset<kLog>(errand.part);
                if (kLog) {
                    row.encode(to, errand.num_channels(p), stages + store_warp * kLogStageBytes);
                } else {
                    row.store(to, errand.num_channels(p));
                }
            }
            bool remote = sends && is_remote(g, errand.owner);
            if (lane == 0)
                shared.flags[team][round & 1][warp] =
                    sends && !remote ? slot_flag(p, errand.owner, slot, errand.part, call.epoch) : nullptr;
            if (kHasNetwork && lane == 0)
                shared.remote[team][round & 1][warp] = {remote ? errand.owner : -1, slot, errand.part};
            send_barrier(team);
        }
        group += deal.next_group;
        errand = Errand(g, group);
        num_mine = __shfl_sync(~0u, num_selections, errand.owner);
        if (group >= num_groups) num_mine = 0;
        item = deal.item;
        next = load_selection(p, errand.owner, item);
    }
}

}  // namespace deepep::lowlatency
