// How a kernel reaches the ranks with its own nvlRank on other nodes.
//
// Network memory is one piece of each rank's memory, with the same layout everywhere. It is divided into Cells: one
// cell for each node, all of one size. In cell n of a rank lies what its peer on node n wrote for it; nobody else
// writes there. So a place is named by (cells, node, offset in the cell) on both sides, and only the policy knows
// addresses.
//
// A policy is a class of static functions, chosen when a kernel is built: PeerMemory below, where the peers' memory is
// mapped on this GPU (virtual nodes), Nvshmem in network_nvshmem.cuh, or Ibgda in network_ibgda.cuh, which writes to
// queues of a network card itself. Data move in two steps: the sender composes
// them at outgoing(), by ordinary or bulk stores, then sends that range:
//
//   outgoing(net, cells, node)                  Address of the cell in which to compose what node's peer shall find.
//   put(net, active, node, ...)                 Sends a range of it.
//   put_signal(net, active, node, ..., value)   Sends a range of it, then sets a flag (u64) of the peer to value.
//   signal(net, node, flags, offset, value)     Sets a flag of the peer, which by itself orders nothing.
//   put_words(net, active, node, to, a, b)      Two words side by side, of which later launches put others: those take
//                                               effect after these, if all are put by the same block where the
//                                               policy's kWordsFollowTheirBlock says so.
//   quiet(net)                                  Returns when all that this rank has sent lies at its peers.
//   quiet(net, asked)                           At those on nodes for which asked(node) is true. Over NVSHMEM, at all.
//
// put, put_signal and put_words are called by all lanes of a warp together; each active lane sends a range of its own,
// at least one byte. The others are called by one thread. Before the call, what was composed must be complete and
// visible to the calling lane: ordinary stores before __syncwarp() or stronger, bulk stores before bulk_wait_written()
// in the lane that issued them and then that. A range may be composed again once the peer has answered for it, or after
// quiet().
//
// Whoever reads a flag by an acquire finds what was sent by the put_signal that set it, and by earlier put_signals of
// the same block to the same peer: these use one queue of the network, which keeps its order.
//
// Low latency alone has put_words: what one launch acknowledges, a later one never takes back. A transport carries
// signals of a queue one after the other even where it lets writes overtake each other.
#pragma once

#include <cstdint>

#include "deepep/memory.cuh"
#include "deepep/network_structs.cuh"

namespace deepep {

// What the peer on that node has written for this rank.
__device__ __forceinline__ uint64_t incoming(const Network& net, const Cells& cells, int node) {
    return net.base + cells.offset + static_cast<uint64_t>(node) * cells.stride;
}

struct PeerMemory {
    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const Cells& cells, int node) {
        return at<const uint64_t>(net.peers)[node] + cells.offset + static_cast<uint64_t>(net.node) * cells.stride;
    }

    // It has been composed in the peer's memory.
    static __device__ __forceinline__ void put(const Network&, bool, int, const Cells&, uint64_t, uint64_t) {}

    // The release covers what other lanes composed before the warp synchronised.
    static __device__ __forceinline__ void put_signal(const Network& net, bool active, int node, const Cells&, uint64_t,
                                                      uint64_t, const Cells& flags, uint64_t flag_offset,
                                                      uint64_t value) {
        if (active) store_release_sys(at<uint64_t>(outgoing(net, flags, node), flag_offset), value);
    }

    static __device__ __forceinline__ void signal(const Network& net, int node, const Cells& flags,
                                                  uint64_t flag_offset, uint64_t value) {
        store_relaxed_sys(at<uint64_t>(outgoing(net, flags, node), flag_offset), value);
    }

    static __device__ __forceinline__ void quiet(const Network&) { fence_sys(); }
};

}  // namespace deepep
