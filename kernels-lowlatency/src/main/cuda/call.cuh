// A call, its epochs and headers, and how a launch waits for other ranks and what it does when one does not come.
//
// What is rare is out of line: a launch takes microseconds and runs nearly all of its code for the first time, so it is
// the lines of code on the way that cost. For the same reason loops are not unrolled, unless what they index is in
// registers; and what has references goes by value to functions that are out of line: by reference, the compiler would
// reach parameters and shared memory through generic addresses everywhere.
#pragma once

#include "deepep/block.cuh"
#include "deepep/math.cuh"
#include "deepep/memory.cuh"
#include "deepep/status.cuh"
#include "deepep/wait.cuh"
#include "lowlatency_params.cuh"
#include "rank_set.cuh"
#include "remote.cuh"

namespace deepep::lowlatency {

constexpr int kSpinsPerLook = 128;  // between looks at the clock

// In shared memory, the same for all threads of a block.
struct Call {
    uint32_t epoch;
    uint32_t next_other;  // of the other kind of call: the first that comes after this one
    RankSet masked;       // ranks left out, as of the launch's beginning
    RankSet reached;      // send half: ranks whose slots are free
    uint64_t launch;      // the number of this launch, from 1: never the same again
    Kind kind;
    bool opened_late;  // it took so long that other blocks may have given up ranks meanwhile
};

__device__ __forceinline__ RankState* state_of(const Group& g) { return at<RankState>(g.state); }

__device__ __forceinline__ RankSet all_ranks(const Group& g) { return ranks_below(g.num_ranks); }

// Epochs are kFirstEpoch = 2, 3, ..., 2^32 - 1, 2, 3, ...: never 0, which memory holds where nothing was stored yet,
// and of one parity after the other. Before the very first call the last epoch is 0, and so are the acknowledgements:
// its slots are free.

__device__ __forceinline__ uint32_t epoch_after(uint32_t epoch) {
    return max(epoch + 1, static_cast<uint32_t>(kFirstEpoch));
}

// The last epoch of the same parity.
__device__ __forceinline__ uint32_t epoch_before_last(uint32_t epoch) {
    return epoch < kFirstEpoch + 2 ? epoch - kFirstEpoch - 2 : epoch - 2;
}

__device__ __forceinline__ bool has_reached(uint32_t value, uint32_t epoch) {
    return static_cast<int32_t>(value - epoch) >= 0;
}

enum Barrier : int {
    kBarrierSend = 1,
    kBarrierSend2 = 2,
    kBarrierReceive = 3,
    kBarrierPlan = 4,
    kBarrierOpen = 5,
    kBarrierPlanned = 6
};

constexpr int kSmallDividends = 1 << 20;

// a / b for 0 <= a < kSmallDividends, b > 0 in a few instructions: (a + 1/2) / b is too far from every integer to be
// rounded to it.
__device__ __forceinline__ int small_div(int a, int b) {
    return __float2int_rz((static_cast<float>(a) + 0.5f) * approximate_reciprocal(static_cast<float>(b)));
}

// Deals work to the warps of a team in all blocks: a warp serves one group, and the items of a group go round the warps
// that serve it. Where there are more groups than warps, a warp serves several.
struct Deal {
    int group, next_group;
    int item, next_item;

    __device__ Deal(int num_groups, int warp, int num_warps, int block = blockIdx.x) {
        int index = warp * gridDim.x + block, total = num_warps * gridDim.x;  // neighbours are in different blocks
        bool many = total >= num_groups;
        next_item = many ? small_div(total, num_groups) : 1;
        item = many ? small_div(index, num_groups) : 0;
        group = !many ? index : item < next_item ? index - item * num_groups : num_groups;
        next_group = many ? num_groups : total;
    }
};

__device__ __forceinline__ bool is_expert(int64_t expert, int num_experts) {
    return static_cast<uint64_t>(expert) < static_cast<uint64_t>(num_experts);
}

// Headers of a call: words that carry the epoch beside their value, so that a word needs no flag and no order.
__device__ __forceinline__ RankCells headers_of(const Group& g, Kind kind, uint32_t epoch) {
    return {g.header_offset[kind] + (epoch & 1) * g.header_parity_stride[kind], g.header_rank_stride[kind]};
}

// The header that a rank has stored here.
__device__ __forceinline__ const uint64_t* header_from(const Group& g, Kind kind, int source, uint32_t epoch) {
    RankCells cells = headers_of(g, kind, epoch);
    return at<const uint64_t>(g.heap[g.rank], cells.offset + source * cells.stride);
}

// Where to store this rank's header for another, before send_cell.
__device__ __forceinline__ uint64_t* header_to(const Group& g, Kind kind, int dest, uint32_t epoch) {
    return at<uint64_t>(outgoing(g, headers_of(g, kind, epoch), dest));
}

// Two words of a header. Pairs with load_words; announces nothing but itself.
__device__ __forceinline__ void store_words(uint64_t* to, uint32_t epoch, uint32_t first, uint32_t second) {
    store_relaxed_sys_v2(to, pack_word(epoch, first), pack_word(epoch, second));
}

// The epoch that both words have, or the older one.
__device__ __forceinline__ uint32_t load_words(const uint64_t* from, uint32_t epoch, uint64_t& first,
                                               uint64_t& second) {
    ulonglong2 words = load_relaxed_sys_v2(from);
    first = words.x, second = words.y;
    return word_epoch(first) == epoch ? word_epoch(second) : word_epoch(first);
}

// The first fault of a launch is the one the host reads; the others are consequences. The host clears `code`, and of
// several launches that it did not look at the first remains. True for that first fault.
__device__ __noinline__ bool record_fault(const Group& g, const Call& call, const Fault& fault) {
    auto claimed = reinterpret_cast<unsigned long long*>(&state_of(g)->claimed);
    if (atomicExch(claimed, call.launch) == call.launch) return false;
    report_fault(g.status, fault);
    return true;
}

// What a thread waits for, and for how long it has.
struct Wait {
    int peer;
    Phase phase;
    bool waited = false;
    bool hurries = false;  // the peer makes the other kind of call, and this call's header must follow soon
    bool agreed = false;  // other blocks have seen the peer's header: no matter who gives it up now, it has come
    bool lost = false;  // the peer never will come, as it makes the other kind of call; or this call has failed
    uint8_t asked = 0;  // when the host was asked last, in steps of kAskNs modulo 256
    int gone = 0;  // 1 + the rank because of which the peer will not come, as the host knew at the look before
    int looks = 0;  // at acknowledgements
    uint64_t deadline = 0;

    __device__ Wait(int p, Phase f) : peer(p), phase(f) {}
    // For how long, at most: a peer that has begun the call is soon to send its rows. Before, it may be busy elsewhere.
    __device__ uint64_t limit(const Group& g) const {
        return phase == kPhaseRows ? g.timeout_ns : g.start_timeout_ns;
    }
    __device__ uint64_t lasted(const Group& g, uint64_t now) const { return now + limit(g) - deadline; }
    // All blocks must come to the same conclusion whether the peer has come; then rows of its call are waited for.
    __device__ bool decides() const { return phase == kPhaseHeader; }
    // Whether the peer has gone on to later calls. A row's flag cannot tell: it may be of any call long ago.
    __device__ bool is_ahead(uint32_t seen, uint32_t expected) const {
        return phase != kPhaseRows && seen != 0 && has_reached(seen, expected);
    }
};

// True if the rank's blocks conclude that the peer is gone: the first to say so decides.
__device__ __noinline__ bool decide(const Group& g, const Call& call, int peer, bool gone) {
    unsigned long long mine = call.launch << 1 | gone;
    auto word = reinterpret_cast<unsigned long long*>(&state_of(g)->decided[peer]);
    for (unsigned long long seen = *static_cast<volatile unsigned long long*>(word);;) {
        if (seen >> 1 == call.launch) return seen & 1;
        unsigned long long old = atomicCAS(word, seen, mine);
        if (old == seen) return gone;
        seen = old;
    }
}

// The same of a wait for a header. Where others have seen it, at least a part of it, the rest is given as long as rows
// are, once.
__device__ inline bool is_gone(const Group& g, const Call& call, Wait& wait, uint64_t now) {
    if (decide(g, call, wait.peer, true)) return true;
    wait.agreed = true;
    wait.phase = kPhaseRows;
    wait.deadline = now + g.timeout_ns;
    return false;
}

// A peer is given up: it becomes masked, or that is a fault, of this launch and of all that follow.
__device__ inline void give_up(const Group& g, const Call& call, Wait& wait, uint32_t expected, uint32_t seen) {
    if (g.mask_timed_out) {
        atomicOr(&state_of(g)->masked[kIsWide ? wait.peer / 32 : 0], 1u << (kIsWide ? wait.peer % 32 : wait.peer));
        *(at<volatile int32_t>(g.timed_out) + wait.peer) = 1;
        return;
    }
    atomicOr(&state_of(g)->lost[kIsWide ? wait.peer / 32 : 0], 1u << (kIsWide ? wait.peer % 32 : wait.peer));
    wait.lost = true;
    Fault fault;
    fault.code = wait.gone != 0 ? kPeerGone : wait.is_ahead(seen, expected) ? kOutOfStep : kTimeout;
    fault.phase = wait.phase;
    fault.rank = g.rank;
    fault.peer = wait.gone != 0 ? wait.gone - 1 : wait.peer;
    fault.expected = expected;
    fault.seen = wait.gone != 0 ? wait.lasted(g, now_ns()) : seen;
    record_fault(g, call, fault);
}

// What the host knows of the peer; to be acted upon after another look for what that stored before it went.
__device__ inline int ask_host(const Group& g, Wait& wait, uint64_t now) {
    uint8_t asked = wait.asked;
    wait.asked = static_cast<uint8_t>(wait.lasted(g, now) / kAskNs);
    if (g.gone == 0 || wait.asked == asked) return 0;
    // acquire; pairs with the release in GoneRanks
    int gone = static_cast<int>(load_acquire_sys(at<const uint32_t>(g.gone) + wait.peer));
    return !g.mask_timed_out || gone == wait.peer + 1 ? gone : 0;  // only who is gone itself is masked
}

// A timeout of no phase: of a rank, the first, that an earlier launch has given up.
__device__ __noinline__ void record_lost(const Group& g, const Call& call, uint32_t lost, int word = 0) {
    Fault fault;
    fault.code = kTimeout;
    fault.rank = g.rank;
    fault.peer = word * 32 + __ffs(lost) - 1;
    fault.expected = call.epoch;
    record_fault(g, call, fault);
}

// A receive half of a dispatch whose bank holds another one.
__device__ __noinline__ void record_taken(const Group& g, const Call& call) {
    Fault fault;
    fault.code = kHandleInvalid;
    fault.rank = g.rank;
    record_fault(g, call, fault);
}

// Ranks make the same calls. So a peer that has begun the call of the other kind that comes after this one, but has not
// begun this one, never will. Both are counted as made, here and there, and the ranks are in step again.
__device__ __noinline__ void skip_other(const Group& g, const Call& call, int peer) {
    Fault fault;
    fault.code = kOperationMismatch;
    fault.phase = kPhaseHeader;
    fault.rank = g.rank;
    fault.peer = peer;
    RankState* state = state_of(g);
    int other = 1 - call.kind;
    if (!record_fault(g, call, fault) || epoch_after(state->epoch[other]) != call.next_other) return;
    state->epoch[other] = call.next_other;
    state->received[other * 2 + (call.next_other & 1)] = call.next_other;
}

// [kinds][parities]: the epochs of which a rank has received all rows.
__device__ __forceinline__ RankCells acks_of(const Group& g) { return {g.acks_offset, 4 * sizeof(uint32_t)}; }

__device__ __forceinline__ const uint32_t* acks_from(const Group& g, int source) {
    return at<const uint32_t>(g.heap[g.rank], acks_of(g).offset + source * acks_of(g).stride);
}

// Ranks that others give up are not waited for much longer. A peer that has received the whole call has had the headers
// of all, or given up those it lacked, and waits for this rank in the next call: if this rank waited for the same ones
// until the start time-out, it would itself be given up there. One peer at each look.
__device__ inline void hurry_after_others(const Group& g, const Call& call, Wait& wait, uint64_t now) {
    if (!g.mask_timed_out || !wait.decides() || wait.deadline <= now + g.timeout_ns) return;
    int peer = wait.looks++ % g.num_ranks;
    if (call.masked >> peer & 1) return;
    // acquire; pairs with the release in publish_received
    uint32_t seen = load_acquire_sys(acks_from(g, peer) + call.kind * 2 + (call.epoch & 1));
    if (seen == call.epoch) wait.deadline = now + g.timeout_ns;
}

// The slow path of a wait: true if it is over, because the peer is given up, or the call.
__device__ __noinline__ bool is_over(const Group& g, const Call& call, Wait& wait, uint32_t expected, uint32_t seen) {
    const volatile RankState* state = state_of(g);
    uint64_t now = now_ns();
    if (wait.deadline == 0) wait.deadline = now + wait.limit(g);
    if (state->claimed == call.launch) {  // it has failed
        wait.lost = true;
        return true;
    }
    int word = word_of(wait.peer);
    bool given_up = (state->masked[word] | state->lost[word]) >> bit_of(wait.peer) & 1;
    if (given_up && !wait.agreed) return !wait.decides() || is_gone(g, call, wait, now);
    if (wait.decides()) {
        Kind other = static_cast<Kind>(1 - call.kind);
        const uint64_t* header = header_from(g, other, wait.peer, call.next_other);
        if (word_epoch(load_acquire_sys(header)) == call.next_other) {  // pairs with store_words
            // Over a network each header travels in some queue, and this call's may come after the other's.
            wait.lost = !is_remote(g, wait.peer) || (wait.hurries && now >= wait.deadline);
            if (wait.lost) return false;
            if (!wait.hurries) wait.deadline = min(wait.deadline, now + g.timeout_ns / 2);
            wait.hurries = true;
        }
    }
    hurry_after_others(g, call, wait, now);
    if (now < wait.deadline && !wait.is_ahead(seen, expected) && wait.gone == 0) {
        wait.gone = ask_host(g, wait, now);
        return false;
    }
    if (wait.decides() && !is_gone(g, call, wait, now)) return false;
    give_up(g, call, wait, expected, seen);
    return true;
}

// Spins until load() gives `epoch`. False if the wait is over without.
template <typename Load>
__device__ __forceinline__ bool await(const Group& g, const Call& call, Wait& wait, uint32_t epoch, Load load) {
#pragma unroll 1
    for (int spins = 1;; ++spins) {
        bool lost = wait.lost;  // seen before the load: a peer that makes both calls has begun this one first
        uint32_t seen = load();
        if (seen == epoch) break;
        wait.waited = true;
        if (lost) {
            skip_other(g, call, wait.peer);
            return false;
        }
        if (spins % kSpinsPerLook == 0 && is_over(g, call, wait, epoch, seen)) return false;
    }
    bool agrees = wait.deadline != 0 || call.opened_late;  // else no block can have given up by now
    return !wait.decides() || !agrees || !decide(g, call, wait.peer, false);
}

// One thread of each block, when all ranks have begun the call: from then on it waits only for what runs already. Were
// the next launch allowed sooner, its blocks could keep those of a rank that shares the GPU from beginning this one.
__device__ __forceinline__ void allow_next(const Group& g) {
    if (g.phases & kAllowNext) allow_next_launch();
}

}  // namespace deepep::lowlatency
