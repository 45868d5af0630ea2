// The names of CUDA C++ that the project's device code uses, for a host compiler. A thread is a fiber of the emulator;
// a block has a thread of the system to itself, so that thread_local is what a block shares.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "block.h"

#define __device__
#define __host__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define __align__(n) alignas(n)
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define DEEPEP_EMULATED

#define threadIdx (::deepep::emulator::self.thread)
#define blockIdx (::deepep::emulator::self.block)
#define blockDim (::deepep::emulator::self.block_dim)
#define gridDim (::deepep::emulator::self.grid_dim)

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) longlong2 {
    long long x, y;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }

namespace deepep::emulator {

template <typename T>
uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <typename T>
T from_bits(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}

inline unsigned lane() { return (self.thread.z * self.block_dim.y + self.thread.y) * self.block_dim.x + self.thread.x; }

template <typename T>
T shuffle(uint32_t mask, T value, unsigned from) {
    return from_bits<T>(gather(mask, to_bits(value), Collective::kShuffle)[from & 31]);
}

// Folds what the threads of `mask` brought.
template <typename T, typename Fold>
T reduce(uint32_t mask, T value, Collective kind, Fold fold) {
    const uint64_t* values = gather(mask, to_bits(value), kind);
    T all = {};
    bool first = true;
    for (int i = 0; i < 32; ++i)
        if (mask >> i & 1) {
            T one = from_bits<T>(values[i]);
            all = first ? one : fold(all, one);
            first = false;
        }
    return all;
}

}  // namespace deepep::emulator

inline void __syncthreads() { deepep::emulator::barrier(0, 0); }
inline int __syncthreads_or(int v) { return deepep::emulator::barrier(0, 0, v != 0) != 0; }
inline int __syncthreads_and(int v) { return deepep::emulator::barrier(0, 0, v == 0) == 0; }
inline void __syncwarp(uint32_t mask = ~0u) { deepep::emulator::gather(mask, 0, deepep::emulator::Collective::kSync); }

template <typename T>
T __shfl_sync(uint32_t mask, T v, int from) {
    return deepep::emulator::shuffle(mask, v, from);
}
template <typename T>
T __shfl_xor_sync(uint32_t mask, T v, int with) {
    return deepep::emulator::shuffle(mask, v, deepep::emulator::lane() ^ with);
}
template <typename T>
T __shfl_up_sync(uint32_t mask, T v, unsigned by) {
    unsigned lane = deepep::emulator::lane() % 32;
    return deepep::emulator::shuffle(mask, v, lane < by ? lane : lane - by);
}

inline uint32_t __ballot_sync(uint32_t mask, bool v) {
    uint32_t bit = v ? 1u << deepep::emulator::lane() % 32 : 0;
    return deepep::emulator::reduce(mask, bit, deepep::emulator::Collective::kVote,
                                    [](uint32_t a, uint32_t b) { return a | b; });
}
inline bool __all_sync(uint32_t mask, bool v) { return __ballot_sync(mask, !v) == 0; }
inline bool __any_sync(uint32_t mask, bool v) { return __ballot_sync(mask, v) != 0; }
inline uint32_t __reduce_or_sync(uint32_t mask, uint32_t v) {
    return deepep::emulator::reduce(mask, v, deepep::emulator::Collective::kReduce,
                                    [](uint32_t a, uint32_t b) { return a | b; });
}
template <typename T>
T __reduce_add_sync(uint32_t mask, T v) {
    return deepep::emulator::reduce(mask, v, deepep::emulator::Collective::kReduce, [](T a, T b) { return a + b; });
}
template <typename T>
T __reduce_min_sync(uint32_t mask, T v) {
    return deepep::emulator::reduce(mask, v, deepep::emulator::Collective::kReduce,
                                    [](T a, T b) { return b < a ? b : a; });
}
template <typename T>
T __reduce_max_sync(uint32_t mask, T v) {
    return deepep::emulator::reduce(mask, v, deepep::emulator::Collective::kReduce,
                                    [](T a, T b) { return a < b ? b : a; });
}
template <typename T>
uint32_t __match_any_sync(uint32_t mask, T v) {
    const uint64_t* values =
        deepep::emulator::gather(mask, deepep::emulator::to_bits(v), deepep::emulator::Collective::kMatch);
    uint32_t same = 0;
    for (int i = 0; i < 32; ++i) same |= (mask >> i & 1) && values[i] == deepep::emulator::to_bits(v) ? 1u << i : 0;
    return same;
}

namespace deepep::emulator {

template <typename T>
Atomic relaxed(T* p, Scope scope = Scope::kGpu) {
    return {p, sizeof(T), true, true, __ATOMIC_RELAXED, scope};
}

}  // namespace deepep::emulator

template <typename T, typename V>
T atomicAdd(T* p, V v) {
    auto word = deepep::emulator::relaxed(p);
    return __atomic_fetch_add(p, static_cast<T>(v), __ATOMIC_RELAXED);
}
template <typename T, typename V>
T atomicAdd_system(T* p, V v) {
    auto word = deepep::emulator::relaxed(p, deepep::emulator::Scope::kSystem);
    return __atomic_fetch_add(p, static_cast<T>(v), __ATOMIC_RELAXED);
}
template <typename T, typename V>
T atomicOr(T* p, V v) {
    auto word = deepep::emulator::relaxed(p);
    return __atomic_fetch_or(p, static_cast<T>(v), __ATOMIC_RELAXED);
}
template <typename T, typename V>
T atomicExch(T* p, V v) {
    auto word = deepep::emulator::relaxed(p);
    return __atomic_exchange_n(p, static_cast<T>(v), __ATOMIC_RELAXED);
}
template <typename T, typename C, typename V>
T atomicCAS(T* p, C compare, V v) {
    T expected = static_cast<T>(compare);
    bool changed;
    {
        auto word = deepep::emulator::relaxed(p);
        changed = __atomic_compare_exchange_n(p, &expected, static_cast<T>(v), false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED);
    }
    if (!changed) deepep::emulator::poll(p);  // whoever tries again waits for another thread
    return expected;
}
// Stores `v` where it replaces what is there.
template <typename T, typename Replaces>
T exchange_if(T* p, T v, int order, Replaces replaces) {
    deepep::emulator::Atomic word(p, sizeof(T), true, true, order, deepep::emulator::Scope::kGpu);
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (replaces(v, old) && !__atomic_compare_exchange_n(p, &old, v, false, order, __ATOMIC_RELAXED)) {
    }
    return old;
}
template <typename T, typename V>
T atomicMin(T* p, V v) {
    return exchange_if(p, static_cast<T>(v), __ATOMIC_RELAXED, [](T a, T b) { return a < b; });
}
template <typename T, typename V>
T atomicMax(T* p, V v) {
    return exchange_if(p, static_cast<T>(v), __ATOMIC_RELAXED, [](T a, T b) { return a > b; });
}

inline void __threadfence_block() { deepep::emulator::fence(deepep::emulator::Scope::kBlock); }
inline void __threadfence() { deepep::emulator::fence(deepep::emulator::Scope::kGpu); }
inline void __threadfence_system() { deepep::emulator::fence(deepep::emulator::Scope::kSystem); }
inline void __nanosleep(unsigned) { deepep::emulator::poll(nullptr); }
template <typename T>
T __ldg(const T* p) {
    return *p;
}
template <typename T>
void __stcs(T* p, T v) {
    *p = v;
}

inline int __popc(uint32_t v) { return __builtin_popcount(v); }
inline int __ffs(uint32_t v) { return __builtin_ffs(static_cast<int>(v)); }
inline int __clz(uint32_t v) { return v == 0 ? 32 : __builtin_clz(v); }
inline int __clzll(unsigned long long v) { return v == 0 ? 64 : __builtin_clzll(v); }
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
// Halves of 16 bits.
inline uint32_t __vmaxu2(uint32_t a, uint32_t b) {
    uint32_t low = (a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff;
    return low | ((a >> 16) > (b >> 16) ? a >> 16 : b >> 16) << 16;
}
inline uint32_t __vminu2(uint32_t a, uint32_t b) {
    uint32_t low = (a & 0xffff) < (b & 0xffff) ? a & 0xffff : b & 0xffff;
    return low | ((a >> 16) < (b >> 16) ? a >> 16 : b >> 16) << 16;
}
inline uint32_t __vsub2(uint32_t a, uint32_t b) { return ((a - b) & 0xffff) | ((a >> 16) - (b >> 16)) << 16; }

inline float __uint_as_float(uint32_t v) { return deepep::emulator::from_bits<float>(v); }
inline float __int_as_float(int v) { return deepep::emulator::from_bits<float>(static_cast<uint32_t>(v)); }
inline uint32_t __float_as_uint(float v) { return static_cast<uint32_t>(deepep::emulator::to_bits(v)); }
inline int __float_as_int(float v) { return static_cast<int>(__float_as_uint(v)); }
inline int __float2int_rz(float v) { return static_cast<int>(v); }
inline uint32_t __float2uint_rn(float v) { return static_cast<uint32_t>(lrintf(v)); }
// -ffp-contract=off keeps these from being fused.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __log2f(float v) { return log2f(v); }

template <typename A, typename B>
auto min(A a, B b) {
    using T = std::common_type_t<A, B>;
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);
}
template <typename A, typename B>
auto max(A a, B b) {
    using T = std::common_type_t<A, B>;
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

namespace deepep::emulator {

template <typename... P>
struct Parameters {
    static constexpr uint32_t bytes[] = {sizeof(P)..., 0};

    template <void (*kKernel)(P...), size_t... kIndices>
    static void call(void* const* params, std::index_sequence<kIndices...>) {
        kKernel(*static_cast<std::remove_const_t<P>*>(params[kIndices])...);
    }
};

template <auto kKernel>
struct Launch;

template <typename... P, void (*kKernel)(P...)>
struct Launch<kKernel> {
    static void run(void* const* params) {
        Parameters<P...>::template call<kKernel>(params, std::index_sequence_for<P...>());
    }
    static constexpr Kernel kernel = {run, sizeof...(P), Parameters<P...>::bytes};
};

}  // namespace deepep::emulator

#define DEEPEP_EMULATED_KERNEL(name, function)                        \
    extern "C" const deepep::emulator::Kernel deepep_emulated_##name; \
    const deepep::emulator::Kernel deepep_emulated_##name = deepep::emulator::Launch<&function>::kernel;
