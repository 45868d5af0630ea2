// Ranks that may be masked, reached through NVSHMEM: all of them are PEs of one world, and a place is a PE. NVSHMEM
// waits for all PEs at once, and for one whose process has ended it may wait for ever or end this process: ranks that
// are masked here are slow or left out, not dead.
#pragma once

#include "deepep/network_nvshmem.cuh"
#include "internode/internode_masks.cuh"

namespace deepep::normal {

struct OverNvshmem {
    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const RailWay&, uint64_t here, uint64_t) {
        return net.base + net.outbox + here;
    }
    static __device__ __forceinline__ void put_signal(const Network& net, bool active, const RailWay& way,
                                                      uint64_t here, uint64_t there, uint64_t num_bytes, uint64_t flag,
                                                      uint64_t value) {
        Nvshmem::put_signal_from(world(net), active, way.place, outgoing(net, way, here, there), there, num_bytes, flag,
                                 value);
    }
    static __device__ __forceinline__ void signal(const Network& net, const RailWay& way, uint64_t flag,
                                                  uint64_t value) {
        Nvshmem::signal(world(net), way.place, Cells{flag, 0}, 0, value);
    }
    static __device__ __forceinline__ void quiet(const Network& net) { Nvshmem::quiet(net); }

  private:
    // Numbers PEs as they are.
    static __device__ __forceinline__ Network world(const Network& net) {
        Network all = net;
        all.first_pe = 0;
        all.pe_stride = 1;
        return all;
    }
};

}  // namespace deepep::normal
