// The send half of combine: each row an expert has computed goes to this rank's slot of its token and selection at the
// token's owner, in parts that are flagged by themselves. Slots and flags belong to one source: what a rank stores late
// that was given up is never taken for somebody else's.
#pragma once

#include "combine_batches.cuh"

namespace deepep::lowlatency {

// What find_bad_selection gives if the dispatch failed, or if a replay, which the host knows nothing of, has taken its
// bank.
constexpr uint32_t kNotReceived = ~0u - 1;

// The smallest token * topk + k that names no expert, or another one than was dispatched, of those that the warp looks
// at; ~0 if none does. A selection may be left out (-1), unless rows are summed before they are sent. All receivers of
// one block.
template <bool kReduce>
__device__ inline uint32_t find_bad_selection(const CombineParams& p, int thread, int num_threads) {
    auto topk_idx = at<const int64_t>(p.topk_idx);
    auto sent_topk_idx = at<const int32_t>(p.sent_topk_idx);
    uint64_t received = at<const Bank>(p.bank)->received;
    uint32_t bad = ~0u;
#pragma unroll 4
    for (int i = thread; i < p.num_tokens * p.topk; i += num_threads) {
        int64_t expert = topk_idx[i], sent = sent_topk_idx[i];
        bool is_left_out = expert == -1 && (!kReduce || sent == -1);
        bool is_good = expert == sent && is_expert(expert, p.num_experts);
        if (!is_left_out && !is_good) bad = min(bad, static_cast<uint32_t>(i));
    }
    return received != p.dispatch ? kNotReceived : __reduce_min_sync(~0u, bad);
}

// The words of a header that say what find_bad_selection has found: two of them.
__device__ __noinline__ uint2 combine_status_words(const CombineParams& p, uint32_t bad, int word) {
    if (bad == kNotReceived) return {0, static_cast<uint32_t>(word == kHasRows ? kHandleInvalid : kOk)};
    int64_t value = at<const int64_t>(p.topk_idx)[bad];
    bool is_selection = value == -1 || is_expert(value, p.num_experts);
    switch (word) {
        case kHasRows: return {0, static_cast<uint32_t>(is_selection ? kSelectionChanged : kExpertOutOfRange)};
        case kCombineToken: return {bad / p.topk, bad % p.topk};
        default: return {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
    }
}

// One warp of one block, lane by receiver and pair of words. num_items(rank): of what is sent there.
template <typename NumItems>
__device__ inline void announce_combine(const CombineParams& p, const Call& call, const Run& run, RankSetIn present,
                                        uint32_t bad, NumItems num_items) {
    constexpr int kPairs = kCombineHeaderWords / 2;
    constexpr int kAtOnce = 32 / kPairs;
    static_assert(kRowFormat == kDispatchEpoch + 1 && kCombineStatus == kHasRows + 1);
    static_assert(kCombineK == kCombineToken + 1 && kCombineValueHigh == kCombineValueLow + 1);
    int lane = threadIdx.x % 32, word = lane % kPairs * 2;
    uint2 two = {0, 0};
    if (bad != ~0u) two = combine_status_words(p, bad, word);
    if (word == kDispatchEpoch) two = {run.dispatch_epoch, static_cast<uint32_t>(p.row_format)};
#pragma unroll 1
    for (int first_dest = 0; first_dest < (kRanks > kAtOnce ? p.group.num_ranks : 1); first_dest += kAtOnce) {
        int dest = first_dest + lane / kPairs;
        bool reaches = dest < p.group.num_ranks && (call.reached >> dest & 1);
        if (word == kHasRows) {
            two.x = dest < p.group.num_ranks && (present >> dest & 1);
            if (kHasNetwork && reaches && two.x != 0) two.x = pack_batches(p, num_items(dest));
        }
        if (reaches) store_words(header_to(p.group, kCombine, dest, call.epoch) + word, call.epoch, two.x, two.y);
        send_cell(p.group, reaches && word == 0, dest, headers_of(p.group, kCombine, call.epoch), 0,
                  kCombineHeaderWords * sizeof(uint64_t));
    }
}

struct SendShared {
    uint32_t pack_takers;  // owners to whom packs are sent; known when the call is open
    // What a team's warps have stored in a round, to be flagged: one round is flagged while the next is stored.
    struct Part {
        int32_t owner;    // -1: nothing
        uint32_t origin;  // as in Selection; of what is sent in batches, the item
        int32_t part;
    } parts[kSendTeams][2][kStoreWarps];
};

// Of the senders, a team's last: it flags what the others have stored.
__device__ __forceinline__ bool is_flag_warp() { return threadIdx.x / 32 % (kStoreWarps + 1) == kStoreWarps; }

__device__ __forceinline__ void send_barrier(int team) { team_barrier(kBarrierSend + team, kSendTeamThreads); }

// A team's last warp, lane by warp that has stored: one fence for a round, because a block's fences wait for one
// another.
template <typename Rows>
__device__ inline void flag_rounds(const CombineParams& p, const Call& call, int team, int num_rounds,
                                   const SendShared& shared) {
    const Group& g = p.group;
    int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int round = 0; round < num_rounds; ++round) {
        send_barrier(team);
        SendShared::Part stored = {-1, 0, 0};
        if (lane < kStoreWarps) stored = shared.parts[team][round & 1][lane];
        bool remote = stored.owner >= 0 && is_remote(g, stored.owner), flags = stored.owner >= 0 && !remote;
        uint64_t flag = flag_offset(p, g.rank, token_of(stored.origin), selection_of(stored.origin), stored.part,
                                    call.epoch);
        if (!__any_sync(~0u, flags || remote)) continue;
        fence_sys();  // release, with the store below; pairs with the acquire in sum_chunks
        if (flags) store_relaxed_sys(at<uint32_t>(g.heap[stored.owner], flag), call.epoch);
        if constexpr (kHasNetwork) send_batches<Rows>(p, call, remote, stored.owner, stored.origin);
    }
}

// The senders of every block, from the launch's beginning: a warp's first row is under way when the call is open. Rows
// go in the order of their tokens, to all owners at once, so that owners can begin to sum.
// takes_parts(rank): whether an owner does; on one node.
template <Wire kWire, typename Rows, typename TakesParts>
__device__ inline void send_rows(const CombineParams& p, const Call& call, TakesParts takes_parts, SendShared& shared,
                                 uint8_t* stages) {
    const Group& g = p.group;
    int team = threadIdx.x / kSendTeamThreads, warp = threadIdx.x % kSendTeamThreads / 32, lane = threadIdx.x % 32;
    int store_warp = team * kStoreWarps + warp;
    int num_groups = g.num_ranks * ((p.hidden + kPartChannels - 1) / kPartChannels);
    Deal deal(num_groups, store_warp, kSendTeams * kStoreWarps);
    // Lane r: of rank r. In large groups, the most of the lane's ranks.
    int num_items = 0;
    if constexpr (kIsWide) {
#pragma unroll 1
        for (int rank = lane; rank < g.num_ranks; rank += 32) num_items = max(num_items, Rows::num_items(p, rank));
    } else {
        num_items = Rows::num_items(p, lane % kRanks);
        if (!takes_parts(lane % kRanks)) num_items = 0;
    }
    auto items_of = [&](int owner) {
        return kIsWide ? Rows::num_items(p, owner) : __shfl_sync(~0u, num_items, owner);
    };
    typename Rows::Item next = Rows::ask(p, PartErrand(g, deal.group).owner, deal.item);
    // As many rounds for all warps, which meet at barriers.
    int most = __reduce_max_sync(~0u, kIsWide || lane < g.num_ranks ? num_items : 0);
    int rounds_per_group = small_div(most + deal.next_item - 1, deal.next_item);
    int groups_per_warp = small_div(num_groups + deal.next_group - 1, deal.next_group);
    if (warp == kStoreWarps) {
        __syncthreads();
        flag_rounds<Rows>(p, call, team, rounds_per_group * groups_per_warp, shared);
        return;
    }
    PartErrand errand(g, deal.group);
    int num_mine = items_of(errand.owner);
    if (deal.group >= num_groups) num_mine = 0;
    int item = deal.item;
    Rows rows(stages + store_warp * Rows::kStageBytes);
    if (item < num_mine) rows.load(p, errand, next);
    __syncthreads();  // the call is open
#pragma unroll 1
    for (int i = 0, round = 0, group = deal.group; i < groups_per_warp; ++i) {
#pragma unroll 1
        for (int j = 0; j < rounds_per_group; ++j, ++round) {
            typename Rows::Item now = next;
            uint32_t origin = Rows::origin(now);
            bool in_batch = is_remote(g, errand.owner);
            uint32_t stored = in_batch ? item : origin;
            bool sends = item < num_mine;
            if (sends && round != 0) rows.load(p, errand, now);
            item += deal.next_item;
            next = Rows::ask(p, errand.owner, item);
            bool reaches = call.reached >> errand.owner & 1;
            if (sends && !reaches) rows.drop(errand.num_channels(p));
            sends = sends && reaches;
            if (sends) {
                uint64_t in_cell = in_batch ? item_offset(p, stored)
                                            : slot_offset(p, token_of(origin), selection_of(origin));
                uint64_t to = outgoing(g, rows_of(p, call.epoch), errand.owner) + in_cell;
                rows.store(to + part_offset<kWire>(errand.part), errand.num_channels(p));
            }
            if (lane == 0) shared.parts[team][round & 1][warp] = {sends ? errand.owner : -1, stored, errand.part};
            send_barrier(team);
        }
        group += deal.next_group;
        errand = PartErrand(g, group);
        num_mine = items_of(errand.owner);
        if (group >= num_groups) num_mine = 0;
        item = deal.item;
        next = Rows::ask(p, errand.owner, item);
    }
}

}  // namespace deepep::lowlatency
