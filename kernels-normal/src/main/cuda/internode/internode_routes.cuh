// Who serves whom across nodes. A token crosses to its forwarder on each node; the ranks whose tokens a rank forwards
// are its homes. Both are told by places, and place i is also the cell of this rank's network memory in which the other
// writes. Headers and endings are exchanged with the contacts.
//
// Routes says who these are, for a network policy. Without masks all three are the peers, the ranks with this one's
// nvlRank, and places are nodes. Masked of internode_masks.cuh looks them up instead. All of it is decided when a
// kernel is built: kernels that know no masks have none of the tests.
#pragma once

#include "internode_params.cuh"

namespace deepep::normal {

// The rank with this one's nvlRank on `node`.
__device__ __forceinline__ int peer_on(const Group& g, int node) { return node * g.num_ranks + g.rank; }

template <class Net>
struct Peers : Net {
    static __device__ __forceinline__ int size(const Network& net) { return net.num_nodes; }
    // A turn i < end_turn() is that of the i-th place from the own node on, in either direction.
    static __device__ __forceinline__ int end_turn(const Network& net) { return net.num_nodes; }
    static __device__ __forceinline__ bool is_used(const Network& net, const int& place) { return place != net.node; }
    static __device__ __forceinline__ int rank(const Group& g, const Network&, int place) { return peer_on(g, place); }
};

template <class Net>
struct PeerContacts : Peers<Net> {
    // The place of this rank itself, whose cell holds its own header.
    static __device__ __forceinline__ int own(const Group&, const Network& net) { return net.node; }
    // Whether there is a header at a place: this rank's own or a contact's.
    static __device__ __forceinline__ bool has_header(const Network&, int) { return true; }
    static __device__ __forceinline__ int node(const Group&, int place) { return place; }
    static __device__ __forceinline__ uint64_t cell(const Group&, const Network& net, const Cells& cells, int place) {
        return incoming(net, cells, place);
    }
    // Whether a rank of another node is a contact, whose header this rank relays; and where.
    static __device__ __forceinline__ bool includes(const Group& g, const Network&, int rank) {
        return rank % g.num_ranks == g.rank;
    }
    static __device__ __forceinline__ int place(const Group& g, int rank) { return rank / g.num_ranks; }
};

template <class Net>
struct Routes {
    using Forwarders = Peers<Net>;
    using Homes = Peers<Net>;
    using Contacts = PeerContacts<Net>;
    static constexpr bool kMaskable = false;  // whether any rank may be masked
    static __device__ __forceinline__ uint32_t word(const Group&) { return 0; }  // what ranks compare
    static __device__ __forceinline__ MaskedRanks neighbours(const Group&) { return {}; }  // masked ones
    static __device__ __forceinline__ bool takes_part(const Network&, int) { return true; }  // a rank among all
    static __device__ __forceinline__ bool reaches(const Network&, int) { return true; }  // tokens of this rank do
    static __device__ __forceinline__ int first(const Network&) { return 0; }  // the lowest rank that takes part
    static __device__ __forceinline__ int ends_together(const Network&) { return 0; }  // whatever the call is
};

template <class Net>
using Forwarders = typename Routes<Net>::Forwarders;
template <class Net>
using Homes = typename Routes<Net>::Homes;
template <class Net>
using Contacts = typename Routes<Net>::Contacts;

}  // namespace deepep::normal
