// Peer memory while ranks may be masked: who serves whom stands in a table that the host writes between calls
// (RailTable, from Rails), so that captured graphs go on with other masks. Without any masked rank it names the peers
// alone, and ranks that run these kernels understand those that run the others.
#pragma once

#include "internode_routes.cuh"

namespace deepep::normal {

// What PeerMemory is, for places of one of the tables.
template <class Places>
struct MappedPlaces {
    static __device__ __forceinline__ void put_signal(const Network& net, bool active, int place, const Cells&,
                                                      uint64_t, uint64_t, const Cells& flags, uint64_t flag_offset,
                                                      uint64_t value) {
        if (active) signal(net, place, flags, flag_offset, value);
    }
    static __device__ __forceinline__ void signal(const Network& net, int place, const Cells& flags,
                                                  uint64_t flag_offset, uint64_t value) {
        store_release_sys(at<uint64_t>(Places::outgoing(net, flags, place), flag_offset), value);
    }
};

__device__ __forceinline__ const RailTable& rails_of(const Network& net) { return *at<const RailTable>(net.queues); }

template <uint64_t RailTable::* kEnds, int32_t RailTable::* kSize>
struct MaskedEnds : MappedPlaces<MaskedEnds<kEnds, kSize>> {
    static __device__ __forceinline__ const RailEnd& end(const Network& net, int place) {
        return at<const RailEnd>(rails_of(net).*kEnds)[place];
    }
    static __device__ __forceinline__ int size(const Network& net) { return rails_of(net).*kSize; }
    // The cell of the own node is a spare one: its turn comes last.
    static __device__ __forceinline__ int end_turn(const Network& net) { return size(net) + 1; }
    static __device__ __forceinline__ bool is_used(const Network& net, int place) { return end(net, place).rank >= 0; }
    static __device__ __forceinline__ int rank(const Group&, const Network& net, int place) {
        return end(net, place).rank;
    }
    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const Cells& cells, int place) {
        const RailEnd& e = end(net, place);
        return e.memory + cells.offset + static_cast<uint64_t>(e.cell) * cells.stride;
    }
};

// Places are ranks. Cells of headers and endings are given for this rank's rail: those of the ranks of a node lie
// between that of a peer and that of the next one.
struct MaskedContacts : MappedPlaces<MaskedContacts> {
    static __device__ __forceinline__ const RailRank& of(const Network& net, int rank) {
        return at<const RailRank>(rails_of(net).ranks)[rank];
    }
    static __device__ __forceinline__ int size(const Network& net) { return rails_of(net).num_ranks; }
    static __device__ __forceinline__ bool is_used(const Network& net, int rank) { return of(net, rank).is_contact; }
    static __device__ __forceinline__ int rank(const Group&, const Network&, int place) { return place; }
    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const Cells& cells, int rank) {
        return of(net, rank).memory + cells.offset + static_cast<uint64_t>(net.node) * cells.stride;
    }
    static __device__ __forceinline__ int own(const Group& g, const Network&) { return g.first_rank + g.rank; }
    static __device__ __forceinline__ bool has_header(const Network& net, int rank) {
        return is_used(net, rank) || rank == rails_of(net).own;
    }
    static __device__ __forceinline__ int node(const Group& g, int rank) { return rank / g.num_ranks; }
    static __device__ __forceinline__ uint64_t cell(const Group& g, const Network& net, const Cells& cells, int rank) {
        return net.base + cells.offset + (rank - g.rank) * static_cast<int64_t>(cells.stride / g.num_ranks);
    }
    static __device__ __forceinline__ bool includes(const Group&, const Network& net, int rank) {
        return is_used(net, rank);
    }
    static __device__ __forceinline__ int place(const Group&, int rank) { return rank; }
};

struct MaskedMemory {
    static __device__ __forceinline__ void quiet(const Network&) { fence_sys(); }
};

template <>
struct Routes<MaskedMemory> {
    using Forwarders = MaskedEnds<&RailTable::forwarders, &RailTable::num_nodes>;
    using Homes = MaskedEnds<&RailTable::homes, &RailTable::num_cells>;
    using Contacts = MaskedContacts;
    static constexpr bool kMaskable = true;
    static __device__ __forceinline__ uint32_t word(const Network& net) { return rails_of(net).word; }
    static __device__ __forceinline__ uint32_t neighbours(const Network& net) { return rails_of(net).neighbours; }
    static __device__ __forceinline__ bool takes_part(const Network& net, int rank) {
        return !MaskedContacts::of(net, rank).is_masked;
    }
    static __device__ __forceinline__ bool reaches(const Network& net, int rank) {
        return MaskedContacts::of(net, rank).is_reached;
    }
    static __device__ __forceinline__ int first(const Network& net) { return rails_of(net).first; }
    static __device__ __forceinline__ int ends_together(const Network& net) { return rails_of(net).ends_together; }
};

}  // namespace deepep::normal
