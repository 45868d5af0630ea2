// Ranks that may be masked, reached through NVSHMEM: all of them are PEs of one world, and a place is a PE. NVSHMEM
// waits for all PEs at once, and for one whose process has ended it may wait for ever or end this process: ranks that
// are masked here are slow or left out, not dead.
#pragma once

#include "deepep/network_nvshmem.cuh"
#include "internode/internode_masks.cuh"

namespace deepep::normal {

struct OverNvshmem : OverNetwork<Nvshmem, OverNvshmem> {
    static __device__ __forceinline__ void quiet(const Network& net) { Nvshmem::quiet(net); }

    // Numbers PEs as they are.
    static __device__ __forceinline__ Network through(const Network& net, const RailWay&) {
        Network all = net;
        all.first_pe = 0;
        all.pe_stride = 1;
        return all;
    }
};

}  // namespace deepep::normal
