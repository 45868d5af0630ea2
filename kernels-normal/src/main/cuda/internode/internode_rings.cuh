// The rings that carry rows between nodes: one per channel and peer, in the network memory of the rank that reads it.
//
// The writer puts rows into slots in order and tells how many (tails); the reader takes them in order and tells how
// many (heads). Both numbers count from 0 in each call, so nothing is cleared and a call may use other channels than
// the last. Telling means a release at system scope, which takes microseconds: one warp of a block does nothing else,
// the warps that move rows only note their progress in shared memory. Peers learn of send_chunk rows or more at a
// time. A writer that waits for room has all its rows told, a reader holds back less than send_chunk of them, and
// num_slots is at least twice that: a full ring always goes on.
#pragma once

#include "deepep/bulk_copy.cuh"
#include "internode_exchange.cuh"

namespace deepep::normal {

// Counts of rows in this call. done is noted by the warp that moves them, told by the one that tells.
struct RingTail {   // of the ring at a peer that a warp here fills
    uint32_t done;  // rows that lie there
    uint32_t told;
    uint32_t put;        // rows whose stores have begun
    uint32_t taken;      // rows that the peer is known to have taken
    uint32_t before_end;  // slots that follow before the ring begins again, if slot is known
    union {
        uint32_t recent;  // dispatch: bit i is set if the token i before the latest one was put
        int32_t place;    // combine, of the first set: i-th of the places that are used
    };
    uint64_t slot;        // where the next row is put, or 0
};

struct RingHead {   // of the ring here that a warp empties
    uint32_t done;  // rows that lie in shared memory
    uint32_t told;
    uint32_t put;    // rows that are known to be there
    uint32_t taken;  // rows whose loads have begun
    uint32_t total;  // dispatch: rows that come in all, or kNotTold
    uint32_t slot;   // combine: of the next row
    uint64_t begin;  // combine: where the ring's slots are
};
constexpr uint32_t kNotTold = ~0u;
static_assert(sizeof(RingTail) == kRingStateBytes && sizeof(RingHead) == kRingStateBytes);

// What a warp that fills or empties rings is doing: 0, or the number of lanes that wait for room, or past its end.
constexpr uint32_t kFinished = 1u << 16;

constexpr uint32_t kTellerNapNs = 200;

// The rings that a block fills or empties: those of channels first, first + step, ... to every place, num_sets channels
// in all. Their states lie as [set][place].
struct BlockRings {
    int first, step, num_sets;

    __device__ int channel(int set) const { return first + set * step; }
};

// Between warps of a block, without a barrier.
__device__ __forceinline__ void note(uint32_t* word, uint32_t value) {
    __threadfence_block();
    atomicExch(word, value);
}

__device__ __forceinline__ void note_more(uint32_t* word, uint32_t change) {
    __threadfence_block();
    atomicAdd(word, change);
}

__device__ __forceinline__ uint32_t noted(uint32_t* word) {
    uint32_t value = atomicAdd(word, 0);
    __threadfence_block();
    return value;
}

__device__ __forceinline__ uint64_t slot_offset(const Internode& b, int channel, uint32_t count) {
    return (static_cast<uint64_t>(channel) * b.num_slots + count % b.num_slots) * b.slot_bytes;
}

// Where the next row is put. What the address is made of takes long to load, so it is kept.
template <class Ends>
__device__ __forceinline__ uint64_t next_slot(const Internode& b, int channel, int place, RingTail& tail) {
    if (tail.slot == 0) {
        tail.slot = Ends::outgoing(b.network, b.slots, place) + slot_offset(b, channel, tail.put);
        tail.before_end = b.num_slots - tail.put % b.num_slots;
    }
    return tail.slot;
}

// It has been put.
__device__ __forceinline__ void advance(const Internode& b, RingTail& tail) {
    ++tail.put;
    tail.slot = --tail.before_end == 0 ? 0 : tail.slot + b.slot_bytes;
}

__device__ __forceinline__ bool has_room(const Internode& b, const RingTail& tail) {
    return tail.put - tail.taken < static_cast<uint32_t>(b.num_slots);
}

// Waits for a free slot in the ring at a place of Ends. The lane that stores, after it has noted all rows that it put
// there.
template <class Ends, class Net>
__device__ inline bool await_room(const Nodes<Net>& nodes, uint32_t epoch, int channel, int place, RingTail& tail,
                                  uint32_t* state) {
    const Internode& b = nodes.b;
    uint32_t full = tail.put - b.num_slots;  // rows taken when there is no room
    auto word = at<const uint64_t>(incoming(b.network, b.heads, place)) + channel;
    note_more(state, 1);
    tail.taken = await_count<Ends>(nodes, epoch, place, word, full);  // pairs with the signal in tell_peers
    note_more(state, ~0u);
    return tail.taken != full;
}

// The warp of a block that tells the peers of the rings which the block's other warps fill (kTails) or empty. Until all
// of these have finished, and the peers know of all rows. states: of the warp of each set, or of one warp for all.
template <class Ends, bool kTails>
__device__ inline void tell_peers(const Internode& b, uint32_t epoch, BlockRings block_rings, uint8_t* rings,
                                  uint32_t* states, int num_states) {
    const Network& net = b.network;
    int size = Ends::size(net), num_rings = block_rings.num_sets * size;
    for (bool all_told = false, any_due = true; !all_told;) {
        if (!any_due) __nanosleep(kTellerNapNs);  // leaves the multiprocessor to those that move rows
        any_due = false;
        all_told = true;
        for (int first = 0; first < num_rings; first += 32) {
            int ring = min(first + static_cast<int>(threadIdx.x) % 32, num_rings - 1);
            bool mine = first + static_cast<int>(threadIdx.x) % 32 < num_rings;
            int set = ring / size, place = ring % size;
            auto progress = reinterpret_cast<RingTail*>(rings) + ring;
            uint32_t state =
                noted(&states[min(set, num_states - 1)]);  // before done: a warp that has finished adds nothing
            uint32_t done = noted(&progress->done), told = mine ? progress->told : done;
            bool urgent = kTails && state != 0;
            bool due = Ends::is_used(net, place) && done - told >= (urgent ? 1u : static_cast<uint32_t>(b.send_chunk));
            all_told &= __all_sync(~0u, state >= kFinished && (!due || !kTails));
            if (!__any_sync(~0u, due)) continue;
            any_due = true;
            int channel = block_rings.channel(set);
            if (kTails) {
                // One range of memory at a time: not past the end of the ring.
                uint32_t next = min(done, told + b.num_slots - told % b.num_slots);
                // release; pairs with the acquires in pick_ring and await_parts
                Ends::put_signal(net, due, place, b.slots, slot_offset(b, channel, told),
                                static_cast<uint64_t>(next - told) * b.slot_bytes, b.tails, channel * sizeof(uint64_t),
                                pack_word(epoch, next));
                if (due) progress->told = next;
            } else if (due) {
                // pairs with await_room; the slots have been read, so there is nothing to order
                Ends::signal(net, place, b.heads, channel * sizeof(uint64_t), pack_word(epoch, done));
                progress->told = done;
            }
        }
        __syncwarp();
    }
}

}  // namespace deepep::normal
