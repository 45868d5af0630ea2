// Waits across nodes: peers tell by their endings what neighbours tell by their done flags.
#pragma once

#include "../shared/waits.cuh"
#include "internode_params.cuh"

namespace deepep::normal {

// Four words as those of done_flag, of the peer on `node`.
__device__ __forceinline__ const uint64_t* ending_of(const Internode& b, int node) {
    return at<const uint64_t>(incoming(b.network, b.endings, node));
}

// The rank that this one exchanges rows with on `node`.
__device__ __forceinline__ int peer_on(const Group& g, int node) { return node * g.num_ranks + g.rank; }

// All ranks: the neighbours on this node, the peers on others, and the neighbours' peers, whose headers these relay.
template <class Net>
struct Nodes {
    const Group& g;
    const Internode& b;

    __device__ bool takes_part(int) const { return true; }

    __device__ bool somebody_left(uint32_t epoch, Phase phase, Fault& fault) const {
        if (OneNode{g}.somebody_left(epoch, phase, fault)) return true;
        for (int node = 0; node < b.network.num_nodes; ++node) {
            if (node == b.network.node) continue;
            uint64_t word = load_acquire_sys(ending_of(b, node));  // acquire; pairs with exchange_endings
            if (word_epoch(word) != epoch || !is_abort(word_value(word))) continue;
            fault = told_fault(g, word, ending_of(b, node), phase, peer_on(g, node));
            return true;
        }
        return false;
    }

    // A rank that is neither a neighbour nor a peer cannot say so here; whoever relays its header waits for it too.
    __device__ bool is_silent(uint32_t epoch, int rank) const {
        int node = rank / g.num_ranks, within = rank % g.num_ranks;
        if (node == b.network.node || within != g.rank) return OneNode{g}.is_silent(epoch, g.first_rank + within);
        return word_epoch(load_relaxed_sys(ending_of(b, node) + kWaitingWord)) != epoch;
    }

    __device__ void say_to_wait(uint32_t epoch) const {
        OneNode{g}.say_to_wait(epoch);
        for (int node = 0; node < b.network.num_nodes; ++node)  // pairs with is_silent
            if (node != b.network.node)
                Net::signal(b.network, node, b.endings, kWaitingWord * sizeof(uint64_t), pack_word(epoch, 0));
    }
};

// Waits for the records (combine: weights) of a peer's block. False if that is in vain.
template <class Net>
__device__ inline bool await_record(const Nodes<Net>& nodes, uint32_t epoch, int node, int block) {
    const Internode& b = nodes.b;
    uint64_t seen;
    auto flag = at<const uint64_t>(incoming(b.network, b.record_flags, node)) + block;
    // acquire; pairs with that put_signal
    return await_word(nodes, epoch, peer_on(nodes.g, node), kPhaseMeta, flag, seen);
}

// Waits until a count that the peer on `node` reports for this epoch exceeds `count`; counts of earlier epochs are 0.
// Returns the count, or `count` if the wait is in vain.
template <class Net>
__device__ inline uint32_t await_count(const Nodes<Net>& nodes, uint32_t epoch, int node, const uint64_t* word,
                                       uint32_t count) {
    auto look = [=](uint64_t& seen) {
        seen = load_acquire_sys(word);
        return word_epoch(seen) == epoch && word_value(seen) > count;
    };
    int peer = peer_on(nodes.g, node);
    uint64_t seen = await(nodes, epoch, look, [=] { return Wait{peer, kPhaseRows, count + 1ll, false, true}; });
    return seen != 0 ? word_value(seen) : count;
}

}  // namespace deepep::normal
