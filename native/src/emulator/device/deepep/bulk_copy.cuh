// Stands in for the header of the same name. The emulator copies as late as the waits allow and in any order, so that a
// stage that is used again too early shows.
#pragma once

#include "block.cuh"

namespace deepep {

inline void bulk_load(void* to, const void* from, uint32_t num_bytes, uint64_t* barrier) {
    emulator::bulk_load(to, from, num_bytes, barrier);
}

inline void bulk_store(void* to, const void* from, uint32_t num_bytes) { emulator::bulk_store(to, from, num_bytes); }
inline void bulk_commit() { emulator::bulk_commit(); }

template <int kPending>
inline void bulk_wait_read() {
    emulator::bulk_wait(kPending, false);
}

template <int kPending = 0>
inline void bulk_wait_written() {
    emulator::bulk_wait(kPending, true);
}

inline void fence_async_proxy() { emulator::fence_proxy(false); }
inline void fence_async_proxy_shared() { emulator::fence_proxy(true); }

}  // namespace deepep
