// How a rank waits for another within a call, and learns that it waits in vain: CallExchange is the same in Java.
//
// A rank that gives up tells so by its done flag and, across nodes, by its ending: its code, and whom it gave up on.
// Whoever waits then stops too and blames the same rank. A rank that has waited for half of the timeout says so in a
// word beside these; whoever waits for such a rank gives it as much time again to tell whom it lacks. So in a chain of
// ranks that wait for each other, all blame the silent one at its end. Of ranks that are gone, the host tells at once.
//
// Until a rank has all headers, it waits for others to begin, for which it may have more time than others have for it.
// It says so again and again, and is not given up while it is heard.
#pragma once

#include <type_traits>

#include "deepep/memory.cuh"
#include "deepep/status.cuh"
#include "deepep/wait.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

__device__ __forceinline__ LocalState* state_of(const Group& g) { return at<LocalState>(g.state); }

__device__ __forceinline__ int my_rank(const Group& g) { return g.first_rank + g.rank; }

// Epochs are kFirstEpoch = 2, 3, ..., 2^32 - 1, 2, 3, ...: never 0, which memory holds where nothing was stored yet,
// and even and odd in turn.
__device__ __forceinline__ uint32_t epoch_after(uint32_t epoch) {
    return max(epoch + 1, static_cast<uint32_t>(kFirstEpoch));
}

// Whether a word that its writer stores in every call is of a later one. Of other words this cannot be told: they may
// be of any call long ago.
__device__ __forceinline__ bool is_later(uint64_t word, uint32_t epoch) {
    return word_epoch(word) != 0 && static_cast<int32_t>(word_epoch(word) - epoch) > 0;
}

__device__ __forceinline__ uint64_t* header_slot(const Group& g, int holder, int source, uint32_t epoch) {
    return at<uint64_t>(g.heap[holder],
                        g.header_offset + (epoch & 1) * g.header_parity_stride + source * g.header_rank_stride);
}

// By DoneWord: how `source` has left a call, and whether it waits itself.
__device__ __forceinline__ uint64_t* done_flag(const Group& g, int holder, int source) {
    return at<uint64_t>(g.heap[holder], g.done_flag_offset + static_cast<uint64_t>(source) * kFlagStrideBytes);
}

// ---- faults ----

// Faults that end a call on this rank alone, in the middle; the peers must not wait for it. Every other code is either
// concluded by all ranks from the same headers or concerns this rank's own output.
__device__ __forceinline__ bool is_abort(uint32_t code) {
    return code == kTimeout || code == kPeerAborted || code == kOutOfStep || code == kGridNotResident ||
           code == kPeerGone;
}

// Whether a thread of this rank has given up on somebody: then nothing else need be waited for.
__device__ __forceinline__ bool has_given_up(const Group& g, uint32_t epoch) {
    auto state = static_cast<const volatile LocalState*>(state_of(g));
    return state->claimed_epoch == epoch && is_abort(state->code);
}

// What peers learn of a fault beside its code: whom this rank gave up on, or the rows it needs and has room for.
__device__ inline uint64_t fault_detail(const Group& g, const Fault& fault) {
    switch (fault.code) {
        case kTooManyExpanded: return static_cast<uint64_t>(fault.expected) << 32 | static_cast<uint32_t>(fault.seen);
        case kPeerAborted: return fault.k;
        case kGridNotResident: return my_rank(g);
        default: return fault.peer;
    }
}

// The first fault of an epoch is the one the host reads; the others are consequences. The host may have one of an
// earlier launch to read first.
__device__ inline void record_fault(const Group& g, uint32_t epoch, const Fault& fault) {
    LocalState* state = state_of(g);
    if (atomicExch(&state->claimed_epoch, epoch) == epoch) return;
    report_fault(g.status, fault);
    state->detail = fault_detail(g, fault);
    state->culprit = fault.rank;
    fence_sys();  // release, with the exchange; pairs with told_code
    atomicExch(&state->code, fault.code);
}

// peer: among all ranks.
__device__ inline Fault wait_fault(const Group& g, Code code, Phase phase, int peer, uint32_t epoch, uint64_t seen) {
    Fault fault;
    fault.code = code;
    fault.phase = phase;
    fault.rank = my_rank(g);
    fault.peer = peer;
    fault.expected = epoch;
    fault.seen = code == kOutOfStep ? word_epoch(seen) : static_cast<int64_t>(seen);
    return fault;
}

// The fault that a peer tells by the first of `words`.
__device__ inline Fault told_fault(const Group& g, uint64_t word, const uint64_t* words, Phase phase, int peer) {
    uint32_t code = word_value(word);
    uint64_t detail = load_relaxed_sys(words + kDoneDetail);
    Fault fault = wait_fault(g, kPeerAborted, phase, peer, word_epoch(word), code);
    fault.k = static_cast<int32_t>(detail);
    if (code == kTooManyExpanded) {
        fault.code = kTooManyExpanded;
        fault.rank = static_cast<int32_t>(load_relaxed_sys(words + kDoneCulprit));
        fault.expected = detail >> 32;
        fault.seen = static_cast<uint32_t>(detail);
    }
    return fault;
}

// Whether a peer ended a call well, which has left the next one as well since: `word` is the first of `words`, a done
// flag of that peer. As this rank is in the call still, the peer has given up all later ones, one after another.
__device__ __forceinline__ bool has_ended_well(uint64_t word, const uint64_t* words, uint32_t epoch) {
    return is_later(word, epoch) && word_value(word) != kOk &&
           load_relaxed_sys(words + kDoneSince) == epoch_after(epoch);
}

// What a done flag of a neighbour says of a call that this rank is in: true, and the fault, if the neighbour has left
// it, and will not send what is waited for.
__device__ inline bool neighbour_left(const Group& g, uint32_t epoch, Phase phase, int neighbour, Fault& fault) {
    const uint64_t* words = done_flag(g, g.rank, neighbour);
    uint64_t word = load_acquire_sys(words);  // acquire; pairs with exchange_done
    bool told = word_epoch(word) == epoch && is_abort(word_value(word)), left = told || is_later(word, epoch);
    if (phase == kPhaseDone) left &= !has_ended_well(word, words, epoch);
    int peer = g.first_rank + neighbour;
    if (left)
        fault = told ? told_fault(g, word, words, phase, peer) : wait_fault(g, kOutOfStep, phase, peer, epoch, word);
    return left;
}

// ---- waits ----

// What one thread waits for.
struct Wait {
    int peer;  // among all ranks
    Phase phase;
    int64_t expected;
    bool in_every_call = false;  // the peer stores the word that is waited for in every call
    bool counts = false;         // the word has the epoch and a count, which is expected
};

// Whether the peer may have yet to begin the call. This rank's own blocks have begun it.
__device__ __forceinline__ bool is_start(const Group& g, const Wait& wait) {
    return wait.phase == kPhaseHeader && wait.peer != my_rank(g);
}

constexpr uint32_t kBeats = 8;  // how often at least, within its time, a rank says that others have yet to begin

// The length of a beat is a power of two, because a division takes registers that the loops of copies need.
__device__ inline uint64_t to_beats(const Group& g, uint64_t ns) {
    return ns >> (63 - __clzll(max(min(g.timeout_ns, g.start_timeout_ns) / kBeats, static_cast<uint64_t>(1))));
}

// A number that changes with each beat; never 0.
__device__ inline uint32_t beat_now(const Group& g) { return max(static_cast<uint32_t>(to_beats(g, now_ns())), 1u); }

// How much longer than usual to wait for a rank, because of what it says of its own waits by `words`, a done flag here.
// It may wait in the call before: ranks of other nodes go on without it.
__device__ inline uint64_t patience_for(const Group& g, uint32_t epoch, uint64_t* words) {
    uint64_t word = load_relaxed_sys(words + kDoneWaiting);  // pairs with say_to_wait
    if (epoch - word_epoch(word) > 1) return 0;  // when epochs begin again, one call has no patience for the one before
    if (word_value(word) == 0) return g.timeout_ns;
    uint32_t now = beat_now(g);
    uint64_t heard = load_relaxed_sys(words + kDoneHeard);
    if (word_epoch(heard) != word_value(word)) {
        store_relaxed_sys(words + kDoneHeard, pack_word(word_value(word), now));
        return g.start_timeout_ns;
    }
    return now - word_value(heard) <= 2 * kBeats ? g.start_timeout_ns : 0;  // the shorter time-out at least
}

// The masked ranks of a node, which are neither sent to nor waited for. LocalState has them, 32 to a word; the host
// changes them between launches only.
struct MaskedFew {
    uint32_t word = 0;  // a register

    static __device__ __forceinline__ MaskedFew of(const Group& g) { return {state_of(g)->masked_ranks[0]}; }
    __device__ __forceinline__ bool has(const Group&, int rank) const { return word >> rank & 1; }
    __device__ __forceinline__ uint32_t among(const Group&, int) const { return word; }
};

struct MaskedMany {
    static __device__ __forceinline__ MaskedMany of(const Group&) { return {}; }
    __device__ __forceinline__ bool has(const Group& g, int rank) const { return among(g, rank / 32) >> rank % 32 & 1; }
    __device__ __forceinline__ uint32_t among(const Group& g, int word) const {
        return state_of(g)->masked_ranks[word];
    }
};

using MaskedRanks = std::conditional_t<kIsWide, MaskedMany, MaskedFew>;

// The ranks of this node, where there are no others. Nodes of internode_waits.cuh are all ranks.
struct OneNode {
    const Group& g;
    MaskedRanks masked;

    // Whether a rank of this node is in the call.
    __device__ bool takes_part(int rank) const { return !masked.has(g, rank); }

    // Whether a source of a dispatch is. These are the ranks of this node; where there are others, those of all nodes.
    __device__ bool is_source(int rank) const { return takes_part(rank); }

    // Whether some rank has told that it gave up, or is in a later call.
    __device__ bool somebody_left(uint32_t epoch, Phase phase, Fault& fault) const {
        for (int i = 0; i < g.num_ranks; ++i)
            if (i != g.rank && takes_part(i) && neighbour_left(g, epoch, phase, i, fault)) return true;
        return false;
    }

    // Whether no rank is in the next call before all have ended this one.
    static __device__ __forceinline__ bool end_together() { return true; }

    // Whether the call is refused while a header is missing: see Nodes.
    static __device__ __forceinline__ bool is_refused(uint32_t, const Wait&) { return false; }

    // See patience_for. Blocks of this rank may wait for peers themselves: then these say first who is missing.
    __device__ uint64_t patience(uint32_t epoch, int rank) const {
        return rank == my_rank(g) ? 2 * max(g.timeout_ns, g.start_timeout_ns)
                                  : patience_for(g, epoch, done_flag(g, g.rank, rank - g.first_rank));
    }

    // The call, and for which beat others have yet to begin it, or 0 if all have.
    __device__ void say_to_wait(uint64_t word) const {
        for (int i = 0; i < g.num_ranks; ++i)  // pairs with patience_for
            if (takes_part(i)) store_relaxed_sys(done_flag(g, i, g.rank) + kDoneWaiting, word);
    }
};

// Says that this rank waits, if it is time to: once, or again and again while others have yet to begin. Of the threads
// of a rank one says it.
template <class Others>
__device__ inline void say_when_due(const Others& others, uint32_t epoch, const Wait& wait, uint64_t waited) {
    const Group& g = others.g;
    bool start = is_start(g, wait);
    if (start ? to_beats(g, waited) == 0 : waited <= g.timeout_ns / 2) return;
    LocalState* state = state_of(g);
    uint32_t* word = start ? &state->waiting_beat : &state->waiting_epoch;
    uint32_t now = start ? beat_now(g) : epoch;
    if (*static_cast<volatile uint32_t*>(word) != now && atomicExch(word, now) != now)
        others.say_to_wait(pack_word(epoch, start ? now : 0));
}

constexpr uint32_t kSpinsPerLook = 64;

// A wait that is not over soon.
struct LateWait {
    uint64_t begin;
    uint32_t asked = 0;  // when others were asked last, in steps of kAskNs from the beginning
    int gone = 0;  // 1 + the rank because of which the peer will not come, as the host knew then; -1: it is over
};

// Whether a wait goes on, or is over, which has been recorded.
template <class Others>
__device__ inline LateWait go_on(const Others& others, uint32_t epoch, const Wait& wait, LateWait late,
                                 uint64_t seen) {
    const Group& g = others.g;
    int gone = late.gone;
    late.gone = -1;
    if (has_given_up(g, epoch)) return late;
    uint64_t waited = now_ns() - late.begin;
    uint32_t asked = late.asked;
    late.asked = static_cast<uint32_t>(waited / kAskNs);
    if (wait.counts) seen = word_epoch(seen) == epoch ? word_value(seen) : 0;
    Fault fault = wait_fault(g, kTimeout, wait.phase, wait.peer, epoch, seen);
    fault.expected = wait.expected;
    if (wait.in_every_call && is_later(seen, epoch)) {
        fault = wait_fault(g, kOutOfStep, wait.phase, wait.peer, epoch, seen);
    } else if (gone == 0 && late.asked == asked) {
        late.gone = 0;
        return late;
    } else if (others.is_refused(epoch, wait)) {
        return late;
    } else if (gone > 0) {  // what the peer stored before it went has been looked for since
        fault.code = kPeerGone;
        fault.peer = gone - 1;
        fault.seen = waited;
    } else if (!others.somebody_left(epoch, wait.phase, fault)) {
        uint64_t limit = is_start(g, wait) ? g.start_timeout_ns : g.timeout_ns;
        if (waited <= limit + others.patience(epoch, wait.peer)) {
            say_when_due(others, epoch, wait, waited);
            // acquire; pairs with the release in GoneRanks
            late.gone = static_cast<int>(load_acquire_sys(at<const uint32_t>(g.gone) + wait.peer));
            return late;
        }
        if (wait.peer == my_rank(g)) fault.code = kGridNotResident;  // this rank's blocks wait for each other
        fence_sys();  // pairs with take_back_waits: whoever no longer says that it waits has told why before
        others.somebody_left(epoch, wait.phase, fault);
    }
    record_fault(g, epoch, fault);
    return late;
}

// The slow path of await, out of line: hot loops have neither its registers nor its code. The word that came, or 0.
template <class Others, class Look, class What>
__device__ __noinline__ uint64_t await_late(Others others, uint32_t epoch, Look look, What what) {
    LateWait late{now_ns()};
    for (uint32_t spins = 1;; ++spins) {
        uint64_t seen;
        if (look(seen)) return seen;
        if (spins % kSpinsPerLook != 0) continue;
        late = go_on(others, epoch, what(), late, seen);
        if (late.gone < 0) return 0;
    }
}

// Spins until look(seen), which sets `seen` to the word it saw. Returns the word, or 0 if the wait is in vain. what():
// the Wait, as it is by then. Both are passed by value.
template <class Others, class Look, class What>
__device__ __forceinline__ uint64_t await(const Others& others, uint32_t epoch, Look look, What what) {
#pragma unroll 1  // 64 looks in a row would push the loops that move rows out of the instruction cache
    for (uint32_t spins = 0; spins < kSpinsPerLook; ++spins) {
        uint64_t seen;
        if (look(seen)) return seen;
    }
    return await_late(others, epoch, look, what);
}

// Spins until *word carries the epoch: then what its writer did before the release is visible here, and `seen` is the
// word. False if the wait is in vain.
template <class Others>
__device__ __forceinline__ bool await_word(const Others& others, uint32_t epoch, int peer, Phase phase,
                                           const uint64_t* word, uint64_t& seen, bool in_every_call = false) {
    auto look = [=](uint64_t& last) {
        last = load_acquire_sys(word);
        return word_epoch(last) == epoch;
    };
    seen = await(others, epoch, look, [=] { return Wait{peer, phase, epoch, in_every_call}; });
    return seen != 0;
}

// Spins until a peer has left the call, of which `words` tell, a done flag here: then `seen` is the first of them.
// False if the wait is in vain.
template <class Others>
__device__ __forceinline__ bool await_end(const Others& others, uint32_t epoch, int peer, const uint64_t* words,
                                          uint64_t& seen) {
    auto look = [=](uint64_t& last) {
        last = load_acquire_sys(words);
        if (has_ended_well(last, words, epoch)) last = pack_word(epoch, kOk);
        return word_epoch(last) == epoch;
    };
    seen = await(others, epoch, look, [=] { return Wait{peer, kPhaseDone, epoch}; });
    return seen != 0;
}

// When a wait begins of which tell_wait tells.
__device__ __forceinline__ uint64_t wait_begin(const Group& g) { return g.waits ? now_ns() : 0; }

// Tells observers, where there are any, how long this rank waited for another, counted among all. One thread of the
// launch for each.
__device__ __forceinline__ void tell_wait(const Group& g, WaitIdx wait, int rank, uint64_t begin_ns) {
    if (g.waits && rank != my_rank(g)) {
        at<volatile uint64_t>(g.waits)[rank * kWaitsPerRank + wait] = now_ns() - begin_ns;
    }
}

}  // namespace deepep::normal
