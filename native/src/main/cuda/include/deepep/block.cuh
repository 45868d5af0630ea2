// What the threads of one block share: named barriers and dynamic shared memory.
#pragma once

#include <cstdint>

namespace deepep {

// All of a team of num_threads, which is a multiple of 32; id is in [1, 16), 0 being __syncthreads()'s.
__device__ __forceinline__ void team_barrier(int id, int num_threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(num_threads) : "memory");
}

// The block's dynamic shared memory, aligned to 128 bytes.
__device__ __forceinline__ uint8_t* dynamic_shared() {
    extern __shared__ __align__(128) uint8_t deepep_dynamic_shared[];
    return deepep_dynamic_shared;
}

}  // namespace deepep
