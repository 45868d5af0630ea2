// Routes while ranks may be masked: who serves whom stands in a table that the host writes between calls (RailTable,
// from Rails), so that captured graphs go on with other masks. Without any masked rank it names the peers alone, and
// ranks that run these kernels understand those that run the others.
//
// The table also says by which RailWay another rank is reached; what that means is said by a class that is chosen when
// a kernel is built: OverMemory below, or OverQueues in internode_queues.cuh. `here` and `there` are the places of a
// range in the network memory of this rank, where it lies in the cell of the other one, and of the other rank.
#pragma once

#include "internode_routes.cuh"

namespace deepep::normal {

// What PeerMemory is, for any rank.
struct OverMemory {
    static __device__ __forceinline__ uint64_t outgoing(const Network&, const RailWay& way, uint64_t, uint64_t there) {
        return way.reach + there;
    }
    static __device__ __forceinline__ void put_signal(const Network&, bool active, const RailWay& way, uint64_t,
                                                      uint64_t, uint64_t, uint64_t flag, uint64_t value) {
        if (active) store_release_sys(at<uint64_t>(way.reach + flag), value);
    }
    static __device__ __forceinline__ void signal(const Network&, const RailWay& way, uint64_t flag, uint64_t value) {
        store_relaxed_sys(at<uint64_t>(way.reach + flag), value);
    }
    static __device__ __forceinline__ void quiet(const Network&) { fence_sys(); }
};

// What a network policy is, for a RailWay. `Way`, which is derived from it, says through which Network that leads, in
// which the way's place is a node.
template <class Net, class Way>
struct OverNetwork {
    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const RailWay&, uint64_t here, uint64_t) {
        return net.base + net.outbox + here;
    }
    static __device__ __forceinline__ void put_signal(const Network& net, bool active, const RailWay& way,
                                                      uint64_t here, uint64_t there, uint64_t num_bytes, uint64_t flag,
                                                      uint64_t value) {
        Net::put_signal_from(Way::through(net, way), active, way.place, outgoing(net, way, here, there), there,
                             num_bytes, flag, value);
    }
    static __device__ __forceinline__ void signal(const Network& net, const RailWay& way, uint64_t flag,
                                                  uint64_t value) {
        Net::signal(Way::through(net, way), way.place, Cells{flag, 0}, 0, value);
    }
};

__device__ __forceinline__ const RailTable& rails_of(const Network& net) { return *at<const RailTable>(net.rails); }

// What a network policy is, for places of one of the tables.
template <class Way, class Places>
struct Served {
    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const Cells& cells, int place) {
        return Way::outgoing(net, Places::way(net, place), Places::here(net, cells, place),
                             Places::there(net, cells, place));
    }
    static __device__ __forceinline__ void put_signal(const Network& net, bool active, int place, const Cells& cells,
                                                      uint64_t offset, uint64_t num_bytes, const Cells& flags,
                                                      uint64_t flag_offset, uint64_t value) {
        RailWay way{net.queues, 0, 0};  // lanes that send nothing may have no place
        uint64_t here = 0, there = 0, flag = 0;
        if (active) {
            way = Places::way(net, place);
            here = Places::here(net, cells, place) + offset;
            there = Places::there(net, cells, place) + offset;
            flag = Places::there(net, flags, place) + flag_offset;
        }
        Way::put_signal(net, active, way, here, there, num_bytes, flag, value);
    }
    static __device__ __forceinline__ void signal(const Network& net, int place, const Cells& flags,
                                                  uint64_t flag_offset, uint64_t value) {
        Way::signal(net, Places::way(net, place), Places::there(net, flags, place) + flag_offset, value);
    }
};

template <class Way, uint64_t RailTable::* kEnds, int32_t RailTable::* kSize>
struct MaskedEnds : Served<Way, MaskedEnds<Way, kEnds, kSize>> {
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
    static __device__ __forceinline__ const RailWay& way(const Network& net, int place) { return end(net, place).way; }
    static __device__ __forceinline__ uint64_t here(const Network&, const Cells& cells, int place) {
        return cells.offset + static_cast<uint64_t>(place) * cells.stride;
    }
    static __device__ __forceinline__ uint64_t there(const Network& net, const Cells& cells, int place) {
        return cells.offset + static_cast<uint64_t>(end(net, place).cell) * cells.stride;
    }
};

// Places are ranks. Cells of headers and endings are given for this rank's rail: those of the ranks of a node lie
// between that of a peer and that of the next one.
template <class Way>
struct MaskedContacts : Served<Way, MaskedContacts<Way>> {
    static __device__ __forceinline__ const RailRank& of(const Network& net, int rank) {
        return at<const RailRank>(rails_of(net).ranks)[rank];
    }
    static __device__ __forceinline__ int size(const Network& net) { return rails_of(net).num_ranks; }
    static __device__ __forceinline__ bool is_used(const Network& net, int rank) { return of(net, rank).is_contact; }
    static __device__ __forceinline__ int rank(const Group&, const Network&, int place) { return place; }
    static __device__ __forceinline__ const RailWay& way(const Network& net, int rank) { return of(net, rank).way; }
    static __device__ __forceinline__ uint64_t here(const Network& net, const Cells& cells, int rank) {
        int num_ranks = rails_of(net).num_ranks / net.num_nodes, own = rails_of(net).own % num_ranks;
        return cells.offset + (rank - own) * static_cast<int64_t>(cells.stride / num_ranks);
    }
    static __device__ __forceinline__ uint64_t there(const Network& net, const Cells& cells, int) {
        return cells.offset + static_cast<uint64_t>(net.node) * cells.stride;
    }
    static __device__ __forceinline__ int own(const Group& g, const Network&) { return g.first_rank + g.rank; }
    static __device__ __forceinline__ bool has_header(const Network& net, int rank) {
        return is_used(net, rank) || rank == rails_of(net).own;
    }
    static __device__ __forceinline__ int node(const Group& g, int rank) { return rank / g.num_ranks; }
    static __device__ __forceinline__ uint64_t cell(const Group&, const Network& net, const Cells& cells, int rank) {
        return net.base + here(net, cells, rank);
    }
    static __device__ __forceinline__ bool includes(const Group&, const Network& net, int rank) {
        return is_used(net, rank);
    }
    static __device__ __forceinline__ int place(const Group&, int rank) { return rank; }
};

// A network policy of its own kind: kernels ask it for nothing else but its Routes.
template <class Way>
struct Masked {
    static __device__ __forceinline__ void quiet(const Network& net) { Way::quiet(net); }
};

template <class Way>
struct Routes<Masked<Way>> {
    using Forwarders = MaskedEnds<Way, &RailTable::forwarders, &RailTable::num_nodes>;
    using Homes = MaskedEnds<Way, &RailTable::homes, &RailTable::num_cells>;
    using Contacts = MaskedContacts<Way>;
    static constexpr bool kMaskable = true;
    static __device__ __forceinline__ uint32_t word(const Group& g) { return state_of(g)->masked; }
    static __device__ __forceinline__ MaskedRanks neighbours(const Group& g) { return MaskedRanks::of(g); }
    static __device__ __forceinline__ bool takes_part(const Network& net, int rank) {
        return !Contacts::of(net, rank).is_masked;
    }
    static __device__ __forceinline__ bool reaches(const Network& net, int rank) {
        return Contacts::of(net, rank).is_reached;
    }
    static __device__ __forceinline__ int first(const Network& net) { return rails_of(net).first; }
    static __device__ __forceinline__ int ends_together(const Network& net) { return rails_of(net).ends_together; }
};

}  // namespace deepep::normal
