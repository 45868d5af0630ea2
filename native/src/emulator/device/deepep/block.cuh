// Stands in for the header of the same name.
#pragma once

#include "cuda_on_host.h"

namespace deepep {

inline void team_barrier(int id, int num_threads) { emulator::barrier(id, num_threads); }

inline void team_arrive(int id, int num_threads) { emulator::barrier_arrive(id, num_threads); }

inline uint8_t* dynamic_shared() { return emulator::self.dynamic_shared; }

inline void barrier_init(uint64_t* barrier, uint32_t num_arrivals) { emulator::mbarrier_init(barrier, num_arrivals); }
inline void barrier_init_fence() {}
inline void barrier_arrive(uint64_t* barrier) { emulator::mbarrier_arrive(barrier, 0); }
inline void barrier_arrive_expect(uint64_t* barrier, uint32_t num_bytes) {
    emulator::mbarrier_arrive(barrier, num_bytes);
}
inline bool barrier_try_wait(uint64_t* barrier, uint32_t parity) {
    return emulator::mbarrier_try_wait(barrier, parity);
}
inline bool barrier_test(uint64_t* barrier, uint32_t parity) { return barrier_try_wait(barrier, parity); }

inline void barrier_wait(uint64_t* barrier, uint32_t parity) {
    while (!barrier_try_wait(barrier, parity)) {
    }
}

}  // namespace deepep
