// Waits across nodes: peers tell by their endings what neighbours tell by their done flags.
#pragma once

#include "../shared/waits.cuh"
#include "internode_routes.cuh"

namespace deepep::normal {

// Words as those of done_flag, of the contact at a place.
template <class Net>
__device__ __forceinline__ uint64_t* ending_of(const Group& g, const Internode& b, int place) {
    return at<uint64_t>(Contacts<Net>::cell(g, b.network, b.endings, place));
}

// All ranks: the neighbours on this node, the contacts on others, and the neighbours' peers, whose headers these relay.
template <class Net>
struct Nodes {
    using Contacts = normal::Contacts<Net>;
    const Group& g;
    const Internode& b;

    __device__ OneNode node() const { return {g, Routes<Net>::neighbours(g)}; }

    __device__ bool takes_part(int neighbour) const { return node().takes_part(neighbour); }

    __device__ bool is_source(int rank) const { return Routes<Net>::takes_part(b.network, rank); }

    __device__ bool somebody_left(uint32_t epoch, Phase phase, Fault& fault) const {
        if (node().somebody_left(epoch, phase, fault)) return true;
        for (int place = 0; place < Contacts::size(b.network); ++place) {
            if (!Contacts::is_used(b.network, place)) continue;
            uint64_t word = load_acquire_sys(ending_of<Net>(g, b, place));  // acquire; pairs with exchange_endings
            if (word_epoch(word) != epoch || !is_abort(word_value(word))) continue;
            fault =
                told_fault(g, word, ending_of<Net>(g, b, place), phase, Contacts::rank(g, b.network, place));
            return true;
        }
        return false;
    }

    __device__ bool end_together() const { return Routes<Net>::ends_together(b.network); }

    // A rank that is neither a neighbour nor a contact cannot say so here; whoever relays its header waits for it too.
    __device__ uint64_t patience(uint32_t epoch, int rank) const {
        if (!is_source(rank)) return g.timeout_ns;  // nobody waits for it
        int on = rank / g.num_ranks, within = rank % g.num_ranks;
        if (on == b.network.node || !Contacts::includes(g, b.network, rank))
            return node().patience(epoch, g.first_rank + within);
        return patience_for(g, epoch, ending_of<Net>(g, b, Contacts::place(g, rank)));
    }

    // Whether a rank that came has another mask than this one: then all refuse the call, and adopt each other's masks.
    // They do not wait for more headers: which ranks exchange them depends on the masks, and others may have given up
    // those that are missing. Where none are masked by a time-out, those may still be in the call before. Masks of
    // larger groups are hashes, which nobody can adopt.
    __device__ bool is_refused(uint32_t epoch, const Wait& wait) const {
        if constexpr (Routes<Net>::kMaskable) {
            bool may = wait.phase == kPhaseHeader && Routes<Net>::ends_together(b.network) && b.num_ranks <= 32;
            int num_ranks = may ? b.num_ranks : 0;
            for (int rank = 0; rank < num_ranks; ++rank) {
                if (!is_source(rank)) continue;
                uint64_t word = load_relaxed_sys(header_slot(g, g.rank, rank, epoch) + kMasked);
                if (word_epoch(word) == epoch && word_value(word) != Routes<Net>::word(g)) return true;
            }
        }
        return false;
    }

    __device__ void say_to_wait(uint64_t word) const {
        node().say_to_wait(word);
        for (int place = 0; place < Contacts::size(b.network); ++place)  // pairs with patience_for
            if (Contacts::is_used(b.network, place))
                Contacts::signal(b.network, place, b.endings, kDoneWaiting * sizeof(uint64_t), word);
    }
};

// Waits for the records (combine: weights) of a block of the rank at a place. False if that is in vain.
template <class Ends, class Net>
__device__ inline bool await_record(const Nodes<Net>& nodes, uint32_t epoch, int place, int block) {
    const Internode& b = nodes.b;
    uint64_t seen;
    auto flag = at<const uint64_t>(incoming(b.network, b.record_flags, place)) + block;
    // acquire; pairs with that put_signal
    return await_word(nodes, epoch, Ends::rank(nodes.g, b.network, place), kPhaseMeta, flag, seen);
}

// Waits until a count that the rank at a place reports for this epoch exceeds `count`; counts of earlier epochs are 0.
// Returns the count, or `count` if the wait is in vain.
template <class Ends, class Net>
__device__ inline uint32_t await_count(const Nodes<Net>& nodes, uint32_t epoch, int place, const uint64_t* word,
                                       uint32_t count) {
    auto look = [=](uint64_t& seen) {
        seen = load_acquire_sys(word);
        return word_epoch(seen) == epoch && word_value(seen) > count;
    };
    int peer = Ends::rank(nodes.g, nodes.b.network, place);
    uint64_t seen = await(nodes, epoch, look, [=] { return Wait{peer, kPhaseRows, count + 1ll, false, true}; });
    return seen != 0 ? word_value(seen) : count;
}

}  // namespace deepep::normal
