// Ranks that may be masked, reached through queues of a network card that kernels write themselves. Peers have the
// queue pairs that they have without masks, the other ranks of other nodes few of their own, in another table. A rank
// is reached through one table only, so that what a block sends to it stays in order. No place is in both tables:
// lanes of a warp that send to different ranks are told apart by it.
#pragma once

#include "deepep/network_ibgda.cuh"
#include "internode_masks.cuh"

namespace deepep::normal {

struct OverQueues {
    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const RailWay&, uint64_t here, uint64_t) {
        return net.base + net.outbox + here;
    }
    static __device__ __forceinline__ void put_signal(const Network& net, bool active, const RailWay& way,
                                                      uint64_t here, uint64_t there, uint64_t num_bytes, uint64_t flag,
                                                      uint64_t value) {
        Ibgda::put_signal_from(through(net, way), active, way.place, outgoing(net, way, here, there), there, num_bytes,
                               flag, value);
    }
    static __device__ __forceinline__ void signal(const Network& net, const RailWay& way, uint64_t flag,
                                                  uint64_t value) {
        Ibgda::signal(through(net, way), way.place, Cells{flag, 0}, 0, value);
    }
    // A masked rank may be dead: nobody waits until the card has given up on it.
    static __device__ inline void quiet(const Network& net) {
        for (int rank = 0; rank < rails_of(net).num_ranks; ++rank) {
            const RailRank& to = MaskedContacts<OverQueues>::of(net, rank);
            if (to.is_contact) Ibgda::quiet_to(through(net, to.way), to.way.place);
        }
        fence_sys();
    }

  private:
    static __device__ __forceinline__ Network through(const Network& net, const RailWay& way) {
        Network those = net;
        those.queues = way.reach;
        return those;
    }
};

}  // namespace deepep::normal
