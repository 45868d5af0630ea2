// Stands in for the header of the same name. The emulator copies as late as the waits allow and in any order, so that a
// stage that is used again too early shows.
#pragma once

#include "cuda_on_host.h"

namespace deepep {

inline void barrier_init(uint64_t* barrier, uint32_t num_arrivals) { emulator::mbarrier_init(barrier, num_arrivals); }
inline void barrier_init_fence() {}
inline void barrier_arrive(uint64_t* barrier) { emulator::mbarrier_arrive(barrier, 0); }
inline void barrier_arrive_expect(uint64_t* barrier, uint32_t num_bytes) {
    emulator::mbarrier_arrive(barrier, num_bytes);
}
inline bool barrier_try_wait(uint64_t* barrier, uint32_t parity) {
    return emulator::mbarrier_try_wait(barrier, parity);
}

inline void barrier_wait(uint64_t* barrier, uint32_t parity) {
    while (!barrier_try_wait(barrier, parity)) {
    }
}

inline void bulk_load(void* to, const void* from, uint32_t num_bytes, uint64_t* barrier) {
    emulator::bulk_load(to, from, num_bytes, barrier);
}

inline void bulk_store(void* to, const void* from, uint32_t num_bytes) { emulator::bulk_store(to, from, num_bytes); }
inline void bulk_commit() { emulator::bulk_commit(); }

template <int kPending>
inline void bulk_wait_read() {
    emulator::bulk_wait(kPending);
}

template <int kPending = 0>
inline void bulk_wait_written() {
    emulator::bulk_wait(kPending);
}

inline void fence_async_proxy() {}
inline void fence_async_proxy_shared() {}

}  // namespace deepep
