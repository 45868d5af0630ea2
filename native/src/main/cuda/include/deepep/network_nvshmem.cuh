// The network policy over NVSHMEM's public device API: IBGDA, IBRC, UCX or libfabric, as NVSHMEM itself is configured.
// See network.cuh for the contract.
//
// Network memory lies in NVSHMEM's symmetric heap. The processing elements are the ranks of one rail, or of all of them:
// first_pe and pe_stride of Network number the peers. What is composed for node n lies `outbox` bytes past cell n, in
// the same heap, which the network card can read.
// Needs relocatable device code and nvshmem_device. NVSHMEM spreads the queues over the blocks by itself
// (NVSHMEM_IBGDA_RC_MAP_BY=cta), and a block serves one channel, or its few. A block's queue has to keep its order, as
// reliable connections of InfiniBand and RoCE do; libfabric's EFA does not.
#pragma once

#include <nvshmem.h>
#include <nvshmemx.h>

#include "deepep/network.cuh"

namespace deepep {

struct Nvshmem {
    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const Cells& cells, int node) {
        return incoming(net, cells, node) + net.outbox;
    }

    static __device__ __forceinline__ void put(const Network& net, bool active, int node, const Cells& cells,
                                               uint64_t offset, uint64_t num_bytes) {
        fence_sys();  // what the lanes composed, before the network card reads it
        __syncwarp();
        for (uint32_t left = __ballot_sync(~0u, active); left != 0; left &= left - 1) {
            int lane = __ffs(left) - 1, to = __shfl_sync(~0u, node, lane);
            uint64_t from = __shfl_sync(~0u, offset, lane), size = __shfl_sync(~0u, num_bytes, lane);
            nvshmemx_putmem_nbi_warp(at<void>(mine(net, cells), from), at<void>(outgoing(net, cells, to), from), size,
                                     pe_of(net, to));
        }
    }

    static __device__ __forceinline__ void put_signal(const Network& net, bool active, int node, const Cells& cells,
                                                      uint64_t offset, uint64_t num_bytes, const Cells& flags,
                                                      uint64_t flag_offset, uint64_t value) {
        fence_sys();  // what the lanes composed, before the network card reads it
        __syncwarp();
        for (uint32_t left = __ballot_sync(~0u, active); left != 0; left &= left - 1) {
            int lane = __ffs(left) - 1, to = __shfl_sync(~0u, node, lane);
            uint64_t from = __shfl_sync(~0u, offset, lane), size = __shfl_sync(~0u, num_bytes, lane);
            uint64_t flag = __shfl_sync(~0u, flag_offset, lane), word = __shfl_sync(~0u, value, lane);
            nvshmemx_putmem_signal_nbi_warp(at<void>(mine(net, cells), from), at<void>(outgoing(net, cells, to), from),
                                            size, at<uint64_t>(mine(net, flags), flag), word, NVSHMEM_SIGNAL_SET,
                                            pe_of(net, to));
        }
    }

    static __device__ __forceinline__ void signal(const Network& net, int node, const Cells& flags,
                                                  uint64_t flag_offset, uint64_t value) {
        nvshmemx_signal_op(at<uint64_t>(mine(net, flags), flag_offset), value, NVSHMEM_SIGNAL_SET, pe_of(net, node));
    }

    static __device__ __forceinline__ void add(const Network& net, int node, const Cells& flags, uint64_t flag_offset,
                                               uint64_t value) {
        nvshmemx_signal_op(at<uint64_t>(mine(net, flags), flag_offset), value, NVSHMEM_SIGNAL_ADD, pe_of(net, node));
    }

    static __device__ __forceinline__ void fence(const Network&, int) { nvshmem_fence(); }

    static __device__ __forceinline__ void quiet(const Network&) { nvshmem_quiet(); }

  private:
    static __device__ __forceinline__ int pe_of(const Network& net, int node) {
        return net.first_pe + node * net.pe_stride;
    }

    // The symmetric address of the cell that this rank writes at its peers.
    static __device__ __forceinline__ uint64_t mine(const Network& net, const Cells& cells) {
        return incoming(net, cells, net.node);
    }
};

}  // namespace deepep
