// Puts as an application makes them: a row is composed where the network policy says, then put with a signal. The
// policy is PeerMemory, or DEEPEP_BENCH_NETWORK where a binary is built with another.
#pragma once

#include "bench_structs.cuh"
#include "deepep/network.cuh"

namespace deepep::bench {

#ifdef DEEPEP_BENCH_NETWORK
using Policy = DEEPEP_BENCH_NETWORK;
#else
using Policy = PeerMemory;
#endif

constexpr int kPutVectors = 4;  // of 16 bytes that a lane has under way

// One warp copies num_bytes, a multiple of 16.
__device__ __forceinline__ void copy_row(uint64_t to, uint64_t from, uint64_t num_bytes) {
    for (uint64_t i = threadIdx.x % 32 * 16; i < num_bytes; i += kPutVectors * 512) {
        uint4 v[kPutVectors];
#pragma unroll
        for (int j = 0; j < kPutVectors; ++j)
            if (i + j * 512 < num_bytes) v[j] = *at<const uint4>(from + i + j * 512);
#pragma unroll
        for (int j = 0; j < kPutVectors; ++j)
            if (i + j * 512 < num_bytes) *at<uint4>(to + i + j * 512) = v[j];
    }
}

// One warp sends num_bytes of the source to a slot of the peer, and says so.
__device__ __forceinline__ void send_row(const PutParams& p, int peer, uint64_t slot, uint64_t num_bytes, uint64_t flag,
                                         uint64_t value) {
    uint64_t offset = slot * p.slot_bytes;
    copy_row(Policy::outgoing(p.network, p.slots, peer) + offset, p.source + offset, num_bytes);
    __syncwarp();
    Policy::put_signal(p.network, threadIdx.x % 32 == 0, peer, p.slots, offset, num_bytes, p.flags, flag * 8, value);
}

// Until the peer's flag is at least `least`; past the deadline the wait is counted and given up. One warp.
__device__ __forceinline__ void await_flag(const PutParams& p, int peer, uint64_t flag, uint64_t least) {
    if (threadIdx.x % 32 == 0) {
        uint64_t deadline = now_ns() + p.timeout_ns;
        // acquire; pairs with the policy's release of the flag
        while (load_acquire_sys(at<const uint64_t>(incoming(p.network, p.flags, peer), flag * 8)) < least)
            if (now_ns() > deadline) {
                add_release_sys(at<uint64_t>(p.num_timeouts), 1);
                break;
            }
    }
    __syncwarp();
}

}  // namespace deepep::bench
