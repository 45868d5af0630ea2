// Bulk copies between shared and global memory (the copy engine of an SM). They complete on mbarriers: see block.cuh.
//
// Obligations of the caller: addresses and sizes are multiples of 16; shared memory written by ordinary stores is
// followed by fence_async_proxy() in each writing thread and a barrier before a bulk store reads it; a stage is
// reused only after bulk_wait_read() in every thread that stored from it, and after fence_async_proxy_shared() and a
// barrier in every thread that read it by ordinary loads.
#pragma once

#include <cstdint>

#include "deepep/block.cuh"

namespace deepep {

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
