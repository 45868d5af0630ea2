// Bulk copies between shared and global memory (the copy engine of an SM), and the mbarriers they complete on.
//
// Obligations of the caller: addresses and sizes are multiples of 16; shared memory written by ordinary stores is
// followed by fence_async_proxy() in each writing thread and a barrier before a bulk store reads it; a stage is
// reused only after bulk_wait_read() in every thread that stored from it, and after fence_async_proxy_shared() and a
// barrier in every thread that read it by ordinary loads.
#pragma once

#include <cstdint>

namespace deepep {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(uint64_t* barrier, uint32_t num_arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(num_arrivals)
                 : "memory");
}

// Once, by the thread that initialised the barriers, before the block synchronises.
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
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return done != 0;
}

__device__ __forceinline__ void barrier_wait(uint64_t* barrier, uint32_t parity) {
    while (!barrier_try_wait(barrier, parity)) {
    }
}

// The barrier must already expect num_bytes.
__device__ __forceinline__ void bulk_load(void* to, const void* from, uint32_t num_bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(num_bytes), "r"(shared_address(barrier))
                 : "memory");
}

__device__ __forceinline__ void bulk_store(void* to, const void* from, uint32_t num_bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)),
                 "r"(num_bytes)
                 : "memory");
}

// Closes this thread's group of bulk stores (it may be empty).
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until at most kPending of this thread's groups still read shared memory.
template <int kPending>
__device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// Until all but the last kPending groups of this thread's bulk stores are written and visible to it.
template <int kPending = 0>
__device__ __forceinline__ void bulk_wait_written() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

// Orders ordinary accesses of this thread against bulk copies, in both directions.
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }

// The same for this block's shared memory alone, which does not wait for accesses to global memory.
__device__ __forceinline__ void fence_async_proxy_shared() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace deepep
