// What the threads of one block share: named barriers, mbarriers and dynamic shared memory.
#pragma once

#include <cstdint>

namespace deepep {

// All of a team of num_threads, which is a multiple of 32; id is in [1, 16), 0 being __syncthreads()'s.
__device__ __forceinline__ void team_barrier(int id, int num_threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(num_threads) : "memory");
}

// A warp of the team that does not wait for the others.
__device__ __forceinline__ void team_arrive(int id, int num_threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(num_threads) : "memory");
}

// The block's dynamic shared memory, aligned to 128 bytes.
__device__ __forceinline__ uint8_t* dynamic_shared() {
    extern __shared__ __align__(128) uint8_t deepep_dynamic_shared[];
    return deepep_dynamic_shared;
}

__device__ __forceinline__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// mbarriers. Arriving is a release, a wait that has succeeded an acquire, within the block. parity: of the phase that
// is waited for, from 0.
__device__ __forceinline__ void barrier_init(uint64_t* barrier, uint32_t num_arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(num_arrivals)
                 : "memory");
}

// Before the block synchronises, by the thread that initialised barriers on which bulk copies complete.
__device__ __forceinline__ void barrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void barrier_arrive_expect(uint64_t* barrier, uint32_t num_bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(num_bytes)
                 : "memory");
}

__device__ __forceinline__ bool barrier_try_wait(uint64_t* barrier, uint32_t parity) {
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
    return done != 0;
}

// Never waits, where try_wait may a while.
__device__ __forceinline__ bool barrier_test(uint64_t* barrier, uint32_t parity) {
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
    return done != 0;
}

__device__ __forceinline__ void barrier_wait(uint64_t* barrier, uint32_t parity) {
    while (!barrier_try_wait(barrier, parity)) {
    }
}

}  // namespace deepep
