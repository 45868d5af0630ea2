// Stands in for the header of the same name. A load that something may wait for lets other threads run first.
#pragma once

#include <time.h>

#include <cstdint>

#include "cuda_on_host.h"

namespace deepep {

// The processor acquires and releases at every load and store; the order is for the detection of races.
template <typename T>
inline T load(const T* p, int order, emulator::Scope scope = emulator::Scope::kSystem) {
    emulator::Atomic word(p, sizeof(T), true, false, order, scope);
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

template <typename T>
inline T load_and_yield(const T* p, int order, emulator::Scope scope = emulator::Scope::kSystem) {
    emulator::poll(p);
    return load(p, order, scope);
}

inline uint64_t load_acquire_sys(const uint64_t* p) { return load_and_yield(p, __ATOMIC_ACQUIRE); }
inline uint32_t load_acquire_sys(const uint32_t* p) { return load_and_yield(p, __ATOMIC_ACQUIRE); }
inline uint64_t load_relaxed_sys(const uint64_t* p) { return load_and_yield(p, __ATOMIC_RELAXED); }
inline uint64_t load_acquire_gpu(const uint64_t* p) {
    return load_and_yield(p, __ATOMIC_ACQUIRE, emulator::Scope::kGpu);
}

template <typename T>
inline void store(T* p, T v, int order, emulator::Scope scope = emulator::Scope::kSystem) {
    emulator::Atomic word(p, sizeof(T), false, true, order, scope);
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

inline void store_release_sys(uint64_t* p, uint64_t v) { store(p, v, __ATOMIC_RELEASE); }
inline void store_release_sys(uint32_t* p, uint32_t v) { store(p, v, __ATOMIC_RELEASE); }
inline void store_release_gpu(uint64_t* p, uint64_t v) { store(p, v, __ATOMIC_RELEASE, emulator::Scope::kGpu); }
inline void store_relaxed_sys(uint64_t* p, uint64_t v) { store(p, v, __ATOMIC_RELAXED); }
inline void store_relaxed_sys(uint32_t* p, uint32_t v) { store(p, v, __ATOMIC_RELAXED); }

inline uint2 load_acquire_sys_v2(const uint32_t* p) {
    uint32_t first = load_and_yield(p, __ATOMIC_ACQUIRE);
    return {first, load(p + 1, __ATOMIC_ACQUIRE)};
}

inline void store_relaxed_sys_v4(uint32_t* p, uint4 v) {
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    for (int i = 0; i < 4; ++i) store(p + i, words[i], __ATOMIC_RELAXED);
}

inline ulonglong2 load_relaxed_sys_v2(const uint64_t* p) {
    uint64_t first = load_and_yield(p, __ATOMIC_RELAXED);
    return {first, load(p + 1, __ATOMIC_RELAXED)};
}

inline void store_relaxed_sys_v2(uint64_t* p, uint64_t first, uint64_t second) {
    store(p, first, __ATOMIC_RELAXED);
    store(p + 1, second, __ATOMIC_RELAXED);
}

// One instruction each: processors with AVX promise that 16 aligned bytes are one access.
inline uint4 load_b128(const uint4* p, int order) {
    emulator::poll(p);
    emulator::Atomic word(p, sizeof(uint4), true, false, order, emulator::Scope::kSystem);
    uint4 v;
    asm volatile("movdqa %1, %%xmm0; movdqu %%xmm0, %0" : "=m"(v) : "m"(*p) : "xmm0");
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return v;
}

inline uint4 load_relaxed_sys_b128(const uint4* p) { return load_b128(p, __ATOMIC_RELAXED); }
inline uint4 load_acquire_sys_b128(const uint4* p) { return load_b128(p, __ATOMIC_ACQUIRE); }

inline void store_relaxed_sys_b128(uint4* p, uint4 v) {
    emulator::Atomic word(p, sizeof(uint4), false, true, __ATOMIC_RELAXED, emulator::Scope::kSystem);
    asm volatile("movdqu %1, %%xmm0; movdqa %%xmm0, %0" : "=m"(*p) : "m"(v) : "xmm0");
}

template <typename T>
inline T add(T* p, T v, int order, emulator::Scope scope) {
    emulator::Atomic word(p, sizeof(T), true, true, order, scope);
    return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
}

inline uint32_t add_acq_rel_gpu(uint32_t* p, uint32_t v) {
    return add(p, v, __ATOMIC_ACQ_REL, emulator::Scope::kGpu);
}
inline void add_release_sys(uint64_t* p, uint64_t v) { add(p, v, __ATOMIC_RELEASE, emulator::Scope::kSystem); }
inline uint32_t add_relaxed_gpu(uint32_t* p, uint32_t v) { return add(p, v, __ATOMIC_RELAXED, emulator::Scope::kGpu); }
inline uint64_t add_relaxed_gpu(uint64_t* p, uint64_t v) { return add(p, v, __ATOMIC_RELAXED, emulator::Scope::kGpu); }

inline void max_release_gpu(uint64_t* p, uint64_t v) {
    exchange_if(p, v, __ATOMIC_RELEASE, [](uint64_t a, uint64_t b) { return a > b; });
}

using emulator::Speculation;

inline void prefetch_l2(const void*) {}
inline void await_previous_launch() { emulator::await_previous_launch(); }
inline void allow_next_launch() {}
inline void fence_sys() { __threadfence_system(); }

inline uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

template <typename T>
inline T* at(uint64_t base, uint64_t offset = 0) {
    return reinterpret_cast<T*>(base + offset);
}

}  // namespace deepep
