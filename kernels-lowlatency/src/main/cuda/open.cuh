// How a launch begins, and how its rank goes on to the next one.
//
// Calls of a rank run one after the other in stream order, so what a launch finds in RankState is what the launch
// before has left. Two things follow. A launch tells the peers which slots *earlier* launches have taken their rows out
// of, without waiting for blocks of its own. And the epoch, in device memory so that a launch can be replayed, is
// advanced by the block that reads it last.
#pragma once

#include "call.cuh"

namespace deepep::lowlatency {

// What the opening warp has asked for and not looked at yet.
struct Opening {
    uint32_t epoch, other;  // of the last send halves, or of the run to be received and what comes after it
    uint32_t masked, lost;  // in large groups, the lane's word
    uint64_t launch;  // the last
    uint64_t claimed;  // the last that has failed; only with a network
    uint2 ack;        // of the lane's rank, by parity; not in large groups
    uint4 received;   // kPublishWarp of the publishing block: as RankState has it
};

// A block in the middle: publishing takes a while, and in a small call it has nothing else to do. Or that of all
// launches, whatever their size.
__device__ __forceinline__ bool is_publishing_block() {
    return blockIdx.x == (kWordsFollowTheirBlock ? 0 : gridDim.x / 2);
}

__device__ __forceinline__ uint4 load_received(const Group& g) {
    return *reinterpret_cast<const uint4*>(state_of(g)->received);
}

// Tells the peers what earlier launches have received. One warp of the publishing block, before that adds this launch,
// and behind a fence of its own. Masked ranks learn it when they are back: by the next launch.
__device__ inline void publish_received(const Group& g, RankSetIn masked, uint4 received) {
    for_words([&](int w) {
        int rank = rank_of_lane(w);
        bool tells = rank < g.num_ranks && !(masked >> rank & 1);
        send_words(g, tells, rank, acks_of(g), received);  // release, with the fence; pairs with await_free_slots
    });
}

constexpr int kOpenWarp = kThreads / 32 - 1;
constexpr int kPublishWarp = kOpenWarp - 1;

// Asks for the state, early in the launch: the caller may have other loads under way. run: what the send half left, for
// a receive half of its own. That takes ranks that were not sent to for masked: they may be back, but they may have
// left this rank out as well.
__device__ __forceinline__ Opening begin_open(const Group& g, Kind kind, const Run* run) {
    Opening opening = {};
    int lane = threadIdx.x % 32;
    if (threadIdx.x / 32 == kPublishWarp && is_publishing_block()) opening.received = load_received(g);
    if (threadIdx.x / 32 != kOpenWarp) return opening;
    const volatile RankState* state = state_of(g);
    bool sends = g.phases & kSend;
    opening.epoch = *static_cast<const volatile uint32_t*>(sends ? &state->epoch[kind] : &run->epoch);
    opening.other = *static_cast<const volatile uint32_t*>(sends ? &state->epoch[1 - kind] : &run->next_other);
    opening.masked = state->masked[kIsWide ? lane % kRankWords : 0];
    if (!sends) opening.masked |= ~run->reached[kIsWide ? lane % kRankWords : 0];
    opening.lost = state->lost[kIsWide ? lane % kRankWords : 0];
    opening.launch = state->launches;
    if (kHasNetwork) opening.claimed = state->claimed;
    if (!kIsWide && sends && lane < g.num_ranks) opening.ack = load_acquire_sys_v2(acks_from(g, lane) + kind * 2);
    return opening;
}

#ifdef DEEPEP_LOWLATENCY_WIDE
// A send half may write into the slots of its epoch's parity at a peer once that has received the epoch before the
// last. One warp; a lane answers for its rank of each round.
__device__ inline void await_free_slots(const Group& g, Call& call) {
    uint32_t needed = epoch_before_last(call.epoch), waits = 0;  // bit by round
    auto ack_of = [&](int w) { return acks_from(g, rank_of_lane(w)) + call.kind * 2 + (call.epoch & 1); };
    auto is_open = [&](int w) { return rank_of_lane(w) < g.num_ranks && !(call.masked >> rank_of_lane(w) & 1); };
#pragma unroll 1
    for (int w = 0; w < kRankWords; ++w)
        waits |= static_cast<uint32_t>(is_open(w) && !has_reached(load_acquire_sys(ack_of(w)), needed)) << w;
    // As in small groups: a peer may wait for what the last launch here has received.
    if (is_publishing_block() && __any_sync(~0u, waits != 0)) {
        fence_sys();
        publish_received(g, call.masked, load_received(g));
    }
#pragma unroll 1
    for (int w = 0; w < kRankWords; ++w) {
        bool is_free = is_open(w);
        if (waits >> w & 1) {
            Wait wait(rank_of_lane(w), kPhaseSlots);
            is_free = await(g, call, wait, needed, [&] {
                uint32_t seen = load_acquire_sys(ack_of(w));  // acquire; pairs with the release in publish_received
                return has_reached(seen, needed) ? needed : seen;
            });
            if (wait.deadline != 0) call.opened_late = true;
        }
        uint32_t reached = __ballot_sync(~0u, is_free);
        if (threadIdx.x % 32 == 0) call.reached.word[w] = reached;
    }
}

// In rounds, one for each word of a set. What the call says lies in shared memory from the beginning.
__device__ inline void open_call(const Group& g, Kind kind, const Opening& opening, Call& call) {
    bool sends = g.phases & kSend;
    int lane = threadIdx.x % 32;
    uint32_t lost = __ballot_sync(~0u, lane < kRankWords && opening.lost != 0);
    if (lane < kRankWords) call.masked.word[lane] = opening.masked | opening.lost, call.reached.word[lane] = 0;
    if (lane == 0) {
        call.epoch = sends ? epoch_after(opening.epoch) : opening.epoch;
        call.next_other = sends ? epoch_after(opening.other) : opening.other;
        call.launch = opening.launch + 1;
        call.kind = kind;
        call.opened_late = false;
    }
    __syncwarp();
    if (lost != 0 && lane == __ffs(lost) - 1) record_lost(g, call, opening.lost, lane);
    if (sends) await_free_slots(g, call);
}

#else
// A send half may write into the slots of its epoch's parity at a peer once that has received the epoch before the
// last. One warp; lane r answers for rank r, and has had its first look at the acknowledgement.
__device__ inline void await_free_slots(const Group& g, Call& call, uint2 ack) {
    int lane = threadIdx.x % 32;
    uint32_t needed = epoch_before_last(call.epoch);
    auto look = [&] {
        uint32_t seen = call.epoch & 1 ? ack.y : ack.x;
        return has_reached(seen, needed) ? needed : seen;
    };
    bool is_free = lane < g.num_ranks && !(call.masked >> lane & 1), late = false;
    bool waits = is_free && look() != needed;
    // A peer may wait for what the last launch here has received, and it too could tell only when its call is open: so
    // after two calls were received, the later one first.
    if (is_publishing_block() && __any_sync(~0u, waits)) {
        fence_sys();
        publish_received(g, call.masked, load_received(g));
    }
    if (waits) {
        Wait wait(lane, kPhaseSlots);
        is_free = await(g, call, wait, needed, [&] {
            // acquire; pairs with the release in publish_received
            ack = load_acquire_sys_v2(acks_from(g, lane) + call.kind * 2);
            return look();
        });
        late = wait.deadline != 0;
    }
    call.reached = __ballot_sync(~0u, is_free);
    call.opened_late = __any_sync(~0u, late);
}

// The opening warp: what the block is told.
__device__ __forceinline__ void open_call(const Group& g, Kind kind, const Opening& opening, Call& call) {
    bool sends = g.phases & kSend;
    Call mine = {sends ? epoch_after(opening.epoch) : opening.epoch,
                 sends ? epoch_after(opening.other) : opening.other,
                 opening.masked | opening.lost,
                 {},
                 opening.launch + 1,
                 kind,
                 false};
    if (opening.lost != 0) record_lost(g, mine, opening.lost);
    if (sends) await_free_slots(g, mine, opening.ack);
    if (threadIdx.x % 32 == 0) call = mine;
}

#endif

// Peers take a call that all ranks see fail for received, though rows of it may still be under way, in other queues
// than those that come to the same slots two calls later. So nothing more is sent before they have arrived. Ranks that
// are left out may be dead: nobody waits until a card has given them up.
__device__ __noinline__ void await_sent(const Group& g) {
#ifdef DEEPEP_LOWLATENCY_NETWORK
    const volatile RankState* state = state_of(g);
    auto is_in = [=](int rank) { return !((state->masked[rank / 32] | state->lost[rank / 32]) >> rank % 32 & 1); };
    if (threadIdx.x % 32 == 0) NetworkPolicy::quiet(g.network, is_in);
    __syncwarp();
#endif
}

// Waits for free slots if the launch sends, and tells the block, behind the barrier that follows. One warp. Another one
// fences what it will publish: later the fence would wait for all that the block has stored.
__device__ inline void finish_open(const Group& g, Kind kind, const Opening& opening, Call& call) {
    int warp = threadIdx.x / 32;
    if (warp == kPublishWarp && is_publishing_block()) fence_sys();
    if (warp != kOpenWarp) return;
    if constexpr (kHasNetwork) {
        // Another block of this launch may have failed by now, which hides whether the last launch had. Lanes may have
        // seen either.
        uint64_t claimed = __shfl_sync(~0u, opening.claimed, 0);
        if (claimed >= opening.launch && opening.launch != 0) await_sent(g);
    }
    open_call(g, kind, opening, call);
}

// kPublishWarp of the publishing block, as soon as the call is open: peers may wait for it with theirs.
__device__ inline void publish(const Group& g, const Call& call, const Opening& opening) {
    if (is_publishing_block()) publish_received(g, call.masked, opening.received);
}

// kPublishWarp of every block, after publish: nobody waits for it. True in one thread of the block that is last to have
// read the epoch: nobody reads it any more, and it becomes this launch's.
__device__ inline bool advance_epoch(const Group& g, const Call& call) {
    if (threadIdx.x % 32 != 0) return false;
    RankState* state = state_of(g);
    if (is_publishing_block() && g.phases & kReceive) state->received[call.kind * 2 + (call.epoch & 1)] = call.epoch;
    if (add_acq_rel_gpu(&state->arrivals, 1) != gridDim.x - 1) return false;  // release by all, acquire by the last
    state->arrivals = 0;
    state->launches = call.launch;
    *at<uint64_t>(g.ran) = call.launch;
    if (g.phases & kSend) state->epoch[call.kind] = call.epoch;
    return true;
}

}  // namespace deepep::lowlatency
