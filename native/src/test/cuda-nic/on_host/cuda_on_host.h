// What device code of the network policy needs of CUDA, for a host compiler: a warp is one thread.
#pragma once

#include <cstdint>

#define __device__
#define __host__
#define __global__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

struct Index {
    unsigned x;
};

extern thread_local Index blockIdx;
constexpr Index threadIdx = {0};

inline uint32_t __ballot_sync(uint32_t, bool active) { return active ? 1 : 0; }
inline uint32_t __match_any_sync(uint32_t lanes, int) { return lanes; }
inline uint64_t __shfl_sync(uint32_t, uint64_t value, int) { return value; }
inline void __syncwarp(uint32_t = ~0u) {}
inline int __ffs(uint32_t v) { return __builtin_ffs(static_cast<int>(v)); }
inline int __popc(uint32_t v) { return __builtin_popcount(v); }
inline uint32_t atomicExch(uint32_t* p, uint32_t v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); }
