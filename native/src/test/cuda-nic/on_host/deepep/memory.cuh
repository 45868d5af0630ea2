// Stands in for deepep/memory.cuh where device code is compiled for the host.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace deepep {

inline uint64_t load_acquire_sys(const uint64_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline uint32_t load_acquire_sys(const uint32_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline uint64_t load_acquire_gpu(const uint64_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline void store_release_sys(uint64_t* p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
inline void store_release_sys(uint32_t* p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
inline void store_release_gpu(uint64_t* p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
inline void add_release_sys(uint64_t* p, uint64_t v) { __atomic_fetch_add(p, v, __ATOMIC_RELEASE); }
inline uint64_t add_relaxed_gpu(uint64_t* p, uint64_t v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
inline void fence_sys() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

inline void max_release_gpu(uint64_t* p, uint64_t v) {
    uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (old < v && !__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

// Waits look at the clock now and then: there may be more threads than processors.
inline uint64_t now_ns() {
    sched_yield();
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

template <typename T>
inline T* at(uint64_t base, uint64_t offset = 0) {
    return reinterpret_cast<T*>(base + offset);
}

}  // namespace deepep
