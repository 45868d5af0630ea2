// The network policy over NVSHMEM's public device API: IBGDA, IBRC, UCX or libfabric, as NVSHMEM itself is configured.
// See network.cuh for the contract.
//
// Network memory lies in NVSHMEM's symmetric heap. The processing elements are the ranks of one rail, or of all of
// them: first_pe and pe_stride of Network number the peers. What is composed for node n lies `outbox` bytes past cell
// n, in the same heap, which the network card can read. Needs relocatable device code and nvshmem_device. NVSHMEM
// spreads the queues over the blocks by itself (NVSHMEM_IBGDA_RC_MAP_BY=cta), and a block serves one channel, or its
// few. A block's queue has to keep its order, as reliable connections of InfiniBand and RoCE do; libfabric's EFA does
// not.
#pragma once

#include <nvshmem.h>
#include <nvshmemx.h>

#include "deepep/network.cuh"

namespace deepep {

struct Nvshmem {
    static constexpr bool kWordsFollowTheirBlock = true;  // NVSHMEM chooses the queue by the block's number

    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const Cells& cells, int node) {
        return incoming(net, cells, node) + net.outbox;
    }

    static __device__ __forceinline__ void put(const Network& net, bool active, int node, const Cells& cells,
                                               uint64_t offset, uint64_t num_bytes) {
        put_from(net, active, node, outgoing(net, cells, node) + offset, own_cell(net, cells) + offset, num_bytes);
    }

    static __device__ __forceinline__ void put_signal(const Network& net, bool active, int node, const Cells& cells,
                                                      uint64_t offset, uint64_t num_bytes, const Cells& flags,
                                                      uint64_t flag_offset, uint64_t value) {
        put_signal_from(net, active, node, outgoing(net, cells, node) + offset, own_cell(net, cells) + offset,
                        num_bytes, own_cell(net, flags) + flag_offset, value);
    }

    // The same for a range at any place of this rank's network memory or outbox, to any offset in the peer's.
    static __device__ __forceinline__ void put_from(const Network& net, bool active, int node, uint64_t from,
                                                    uint64_t to, uint64_t num_bytes) {
        for (uint32_t left = begin_send(active); left != 0; left &= left - 1) {
            int lane = __ffs(left) - 1, dest = __shfl_sync(~0u, node, lane);
            uint64_t source = __shfl_sync(~0u, from, lane), target = __shfl_sync(~0u, net.base + to, lane);
            uint64_t size = __shfl_sync(~0u, num_bytes, lane);
            nvshmemx_putmem_nbi_warp(at<void>(target), at<void>(source), size, pe_of(net, dest));
        }
    }

    static __device__ __forceinline__ void put_signal_from(const Network& net, bool active, int node, uint64_t from,
                                                           uint64_t to, uint64_t num_bytes, uint64_t flag,
                                                           uint64_t value) {
        for (uint32_t left = begin_send(active); left != 0; left &= left - 1) {
            int lane = __ffs(left) - 1, dest = __shfl_sync(~0u, node, lane);
            uint64_t source = __shfl_sync(~0u, from, lane), target = __shfl_sync(~0u, net.base + to, lane);
            uint64_t size = __shfl_sync(~0u, num_bytes, lane), word = __shfl_sync(~0u, value, lane);
            uint64_t signal = __shfl_sync(~0u, net.base + flag, lane);
            nvshmemx_putmem_signal_nbi_warp(at<void>(target), at<void>(source), size, at<uint64_t>(signal), word,
                                            NVSHMEM_SIGNAL_SET, pe_of(net, dest));
        }
    }

    // Two words side by side. As signals, which nothing overtakes in their queue: IBGDA and IBDEVX carry puts of any
    // length as writes to memory with relaxed ordering.
    static __device__ __forceinline__ void put_words(const Network& net, bool active, int node, uint64_t to,
                                                     uint64_t first, uint64_t second) {
        if (!active) return;
        auto words = at<uint64_t>(net.base + to);
        nvshmemx_signal_op(words, first, NVSHMEM_SIGNAL_SET, pe_of(net, node));
        nvshmemx_signal_op(words + 1, second, NVSHMEM_SIGNAL_SET, pe_of(net, node));
    }

    static __device__ __forceinline__ void signal(const Network& net, int node, const Cells& flags,
                                                  uint64_t flag_offset, uint64_t value) {
        nvshmemx_signal_op(at<uint64_t>(net.base + own_cell(net, flags), flag_offset), value, NVSHMEM_SIGNAL_SET,
                           pe_of(net, node));
    }

    static __device__ __forceinline__ void quiet(const Network&) { nvshmem_quiet(); }

    // NVSHMEM waits for all PEs at once.
    template <typename Asked>
    static __device__ __forceinline__ void quiet(const Network& net, Asked) {
        quiet(net);
    }

  private:
    // The lanes of a warp that send; what all of them composed comes before the network card reads it.
    static __device__ __forceinline__ uint32_t begin_send(bool active) {
        uint32_t lanes = __ballot_sync(~0u, active);
        if (lanes == 0) return 0;
        fence_sys();
        __syncwarp();
        return lanes;
    }

    static __device__ __forceinline__ int pe_of(const Network& net, int node) {
        return net.first_pe + node * net.pe_stride;
    }

    // Offset of the cell that this rank writes at its peers.
    static __device__ __forceinline__ uint64_t own_cell(const Network& net, const Cells& cells) {
        return cells.offset + static_cast<uint64_t>(net.node) * cells.stride;
    }
};

}  // namespace deepep
