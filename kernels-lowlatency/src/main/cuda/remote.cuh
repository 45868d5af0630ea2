// How the kernels of one binary reach the other ranks, chosen where it is built.
//
// One node (nothing defined): at most 8 ranks, all of whose heaps are mapped here. What a rank shall find is stored
// there. Several nodes (DEEPEP_LOWLATENCY_INTERNODE): more ranks; their heaps may all be mapped, as of virtual nodes.
// With a network besides (DEEPEP_LOWLATENCY_NETWORK, a policy of deepep/network.cuh): ranks whose heap is 0 are on
// other nodes. What they shall find is composed in this rank's outbox and then put, rows in batches (see
// dispatch_batches.cuh and combine_batches.cuh). The outbox is divided as the heap is, but in cells [rank] the peer
// takes the place of this rank. A part of it is composed again when the peer has freed the slot that it went to, two
// epochs later.
#pragma once

#include "deepep/memory.cuh"
#include "deepep/status.cuh"
#include "lowlatency_params.cuh"

namespace deepep::lowlatency {

#ifdef DEEPEP_LOWLATENCY_NETWORK
constexpr bool kHasNetwork = true;
using NetworkPolicy = DEEPEP_LOWLATENCY_NETWORK;
// Whether what send_words sends must come from the same block in all launches.
constexpr bool kWordsFollowTheirBlock = NetworkPolicy::kWordsFollowTheirBlock;
#else
constexpr bool kHasNetwork = false;
using NetworkPolicy = void;
constexpr bool kWordsFollowTheirBlock = false;
#endif

#ifdef DEEPEP_LOWLATENCY_INTERNODE
constexpr bool kHasOneNode = false;
#else
constexpr bool kHasOneNode = true;
#endif

// False at compile time in a binary without a network.
__device__ __forceinline__ bool is_remote(const Group& g, int rank) { return kHasNetwork && g.heap[rank] == 0; }

// A region with a cell for each rank, in all heaps.
struct RankCells {
    uint64_t offset;
    uint64_t stride;
};

// Where to store what `rank` shall find in this rank's cell.
__device__ __forceinline__ uint64_t outgoing(const Group& g, const RankCells& cells, int rank) {
    if (is_remote(g, rank)) return g.heap[g.rank] + g.outbox + cells.offset + rank * cells.stride;
    return g.heap[rank] + cells.offset + g.rank * cells.stride;
}

// All lanes of a warp, after it has stored [offset, offset + num_bytes) of what the lane's rank shall find: sends it.
__device__ __forceinline__ void send_cell(const Group& g, bool active, int rank, const RankCells& cells,
                                          uint64_t offset, uint64_t num_bytes) {
#ifdef DEEPEP_LOWLATENCY_NETWORK
    __syncwarp();
    active = active && is_remote(g, rank);
    uint64_t from = active ? outgoing(g, cells, rank) + offset : 0;
    NetworkPolicy::put_from(g.network, active, rank, from, cells.offset + g.rank * cells.stride + offset, num_bytes);
#endif
}

// The same with a flag behind it, the active lanes for remote ranks. What was stored must be visible to the lane.
__device__ __forceinline__ void send_flagged(const Group& g, bool active, int rank, const RankCells& cells,
                                             uint64_t offset, uint64_t num_bytes, uint64_t flag, uint64_t value) {
#ifdef DEEPEP_LOWLATENCY_NETWORK
    uint64_t from = active ? outgoing(g, cells, rank) + offset : 0;
    NetworkPolicy::put_signal_from(g.network, active, rank, from, cells.offset + g.rank * cells.stride + offset,
                                   num_bytes, flag, value);
#endif
}

// All lanes of a warp: four words to the beginning of this rank's cell at the lane's rank, of which later launches send
// others. What an earlier one sends never replaces what a later one has sent.
__device__ __forceinline__ void send_words(const Group& g, bool active, int rank, const RankCells& cells,
                                           const uint4& words) {
    bool remote = is_remote(g, rank);
    if (active && !remote) store_relaxed_sys_v4(at<uint32_t>(outgoing(g, cells, rank)), words);
#ifdef DEEPEP_LOWLATENCY_NETWORK
    __syncwarp();
    NetworkPolicy::put_words(g.network, active && remote, rank, cells.offset + g.rank * cells.stride,
                             pack_word(words.x, words.y), pack_word(words.z, words.w));
#endif
}

// Adds to what has been counted of a batch in this epoch, and tells how much it is now. Release and acquire, with
// fences before and behind it.
__device__ __forceinline__ uint32_t count_parts(uint64_t counter, uint32_t epoch, uint32_t more) {
    auto word = at<unsigned long long>(counter);
    for (unsigned long long seen = *static_cast<volatile unsigned long long*>(word);;) {
        uint32_t count = (word_epoch(seen) == epoch ? word_value(seen) : 0) + more;
        unsigned long long old = atomicCAS(word, seen, static_cast<unsigned long long>(pack_word(epoch, count)));
        if (old == seen) return count;
        seen = old;
    }
}

}  // namespace deepep::lowlatency
