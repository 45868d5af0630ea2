// Ordered loads, stores and fences between blocks of one GPU ("gpu") and GPUs of one node ("sys"). This header,
// block.cuh, bulk_copy.cuh and math.cuh are the only ones with PTX: the emulator has its own. Relaxed accesses carry no
// order of their own: pair them with fence_sys() on both sides.
#pragma once

#include <cstdint>

namespace deepep {

__device__ __forceinline__ uint64_t load_acquire_sys(const uint64_t* p) {
    uint64_t v;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_release_sys(uint64_t* p, uint64_t v) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

__device__ __forceinline__ uint32_t load_acquire_sys(const uint32_t* p) {
    uint32_t v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_release_sys(uint32_t* p, uint32_t v) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ uint64_t load_relaxed_sys(const uint64_t* p) {
    uint64_t v;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_relaxed_sys(uint64_t* p, uint64_t v) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

__device__ __forceinline__ void store_relaxed_sys(uint32_t* p, uint32_t v) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// One access of two or four words; each word is whole, all of them together need not be.
__device__ __forceinline__ uint2 load_acquire_sys_v2(const uint32_t* p) {
    uint2 v;
    asm volatile("ld.acquire.sys.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_relaxed_sys_v4(uint32_t* p, uint4 v) {
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

__device__ __forceinline__ ulonglong2 load_relaxed_sys_v2(const uint64_t* p) {
    ulonglong2 v;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_relaxed_sys_v2(uint64_t* p, uint64_t first, uint64_t second) {
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(first), "l"(second) : "memory");
}

// One access of 16 bytes, which arrive together.
__device__ __forceinline__ uint4 load_acquire_sys_b128(const uint4* p) {
    uint4 v;
    asm volatile(
        "{ .reg .b128 q; .reg .b64 low, high; ld.acquire.sys.global.b128 q, [%4]; mov.b128 {low, high}, q;"
        " mov.b64 {%0, %1}, low; mov.b64 {%2, %3}, high; }"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(p)
        : "memory");
    return v;
}

__device__ __forceinline__ uint4 load_relaxed_sys_b128(const uint4* p) {
    uint4 v;
    asm volatile(
        "{ .reg .b128 q; .reg .b64 low, high; ld.relaxed.sys.global.b128 q, [%4]; mov.b128 {low, high}, q;"
        " mov.b64 {%0, %1}, low; mov.b64 {%2, %3}, high; }"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(p)
        : "memory");
    return v;
}

__device__ __forceinline__ void store_relaxed_sys_b128(uint4* p, uint4 v) {
    asm volatile(
        "{ .reg .b128 q; .reg .b64 low, high; mov.b64 low, {%1, %2}; mov.b64 high, {%3, %4}; mov.b128 q, {low, high};"
        " st.relaxed.sys.global.b128 [%0], q; }" ::"l"(p),
        "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
        : "memory");
}

__device__ __forceinline__ uint64_t load_acquire_gpu(const uint64_t* p) {
    uint64_t v;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_release_gpu(uint64_t* p, uint64_t v) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

__device__ __forceinline__ uint32_t add_acq_rel_gpu(uint32_t* p, uint32_t v) {
    uint32_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
    return old;
}

// Unlike atomicAdd in one lane of a warp, it does not wait for the old value at once.
__device__ __forceinline__ uint32_t add_relaxed_gpu(uint32_t* p, uint32_t v) {
    uint32_t old;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
    return old;
}

__device__ __forceinline__ void add_release_sys(uint64_t* p, uint64_t v) {
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

__device__ __forceinline__ uint64_t add_relaxed_gpu(uint64_t* p, uint64_t v) {
    uint64_t old;
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(p), "l"(v) : "memory");
    return old;
}

__device__ __forceinline__ void max_release_gpu(uint64_t* p, uint64_t v) {
    asm volatile("red.release.gpu.global.max.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// Orders everything this thread has done or observed before it against everything after it, for all GPUs and the host.
__device__ __forceinline__ void fence_sys() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// By every thread, before anything that an earlier launch of the stream may use is read or written: blocks of a launch
// with LaunchConfig.overlapsPrevious begin before that one's end has been processed. Otherwise it does nothing.
__device__ __forceinline__ void await_previous_launch() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// By one thread of each block, once the launch waits only for what runs already: blocks of the next one may begin where
// there is room, and wait in await_previous_launch.
__device__ __forceinline__ void allow_next_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Stands beside loads of what others may store meanwhile, of which nothing is used then. The emulator would call them
// races. Nothing but loads may be in its scope.
struct Speculation {
    __device__ __forceinline__ explicit Speculation(bool) {}
};

// Asks for the 128 bytes around p, which nobody waits for.
__device__ __forceinline__ void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// Nanoseconds on the GPU's global clock; it ticks coarsely, so it serves deadlines, not measurements.
__device__ __forceinline__ uint64_t now_ns() {
    uint64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

template <typename T>
__device__ __forceinline__ T* at(uint64_t base, uint64_t offset = 0) {
    return reinterpret_cast<T*>(base + offset);
}

}  // namespace deepep
