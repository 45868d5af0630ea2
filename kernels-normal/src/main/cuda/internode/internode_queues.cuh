// Ranks that may be masked, reached through queues of a network card that kernels write themselves. Peers have the
// queue pairs that they have without masks, the other ranks of other nodes few of their own, in another table. A rank
// is reached through one table only, so that what a block sends to it stays in order. No place is in both tables:
// lanes of a warp that send to different ranks are told apart by it.
#pragma once

#include "deepep/network_ibgda.cuh"
#include "internode_masks.cuh"

namespace deepep::normal {

struct OverQueues : OverNetwork<Ibgda, OverQueues> {
    // A masked rank may be dead: nobody waits until the card has given up on it.
    static __device__ inline void quiet(const Network& net) {
        uint64_t deadline = 0;
        for (int rank = 0; rank < rails_of(net).num_ranks; ++rank) {
            const RailRank& to = MaskedContacts<OverQueues>::of(net, rank);
            if (to.is_contact) Ibgda::quiet_to(through(net, to.way), to.way.place, deadline);
        }
        fence_sys();
    }

    static __device__ __forceinline__ Network through(const Network& net, const RailWay& way) {
        Network those = net;
        those.queues = way.reach;
        return those;
    }
};

}  // namespace deepep::normal
