// Kernels for the test of the emulator's detection of races. Each has two halves, of 64 threads: one launch writes the
// words and tells by a flag, the other waits for the flag and reads.
#include "deepep/bulk_copy.cuh"
#include "deepep/memory.cuh"

namespace deepep::checks {

constexpr int kFlag = 64;

// The words that half 0 writes, and half 1 reads.
template <class Write, class Tell>
__device__ void pass(uint64_t* words, int half, Write write, Tell tell) {
    if (half == 0) {
        write(words);
        __syncthreads();
        if (threadIdx.x == 0) tell(words + kFlag);
    } else {
        if (threadIdx.x == 0)
            while (load_acquire_sys(words + kFlag) == 0) {
            }
        __syncthreads();
        words[128 + threadIdx.x] = words[threadIdx.x];
    }
}

__device__ void write_own(uint64_t* words) { words[threadIdx.x] = threadIdx.x; }

__global__ void released(uint64_t* words, int half) {
    pass(words, half, write_own, [](uint64_t* flag) { store_release_sys(flag, 1); });
}

__global__ void fenced(uint64_t* words, int half) {
    pass(words, half, write_own, [](uint64_t* flag) {
        fence_sys();
        store_relaxed_sys(flag, 1);
    });
}

__global__ void relaxed(uint64_t* words, int half) {
    pass(words, half, write_own, [](uint64_t* flag) { store_relaxed_sys(flag, 1); });
}

// A relaxed word is enough to give words back that have been read.
__global__ void given_back(uint64_t* words, int half) {
    if (half == 0) {
        words[128 + threadIdx.x] = words[threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) store_relaxed_sys(words + kFlag, 1);
    } else {
        if (threadIdx.x == 0)
            while (load_relaxed_sys(words + kFlag) == 0) {
            }
        __syncthreads();
        write_own(words);
    }
}

// Enough for a reader on the same GPU.
__global__ void released_on_gpu(uint64_t* words, int half) {
    pass(words, half, write_own, [](uint64_t* flag) { store_release_gpu(flag, 1); });
}

// The first warp tells before the second one has written.
__global__ void without_barrier(uint64_t* words, int half) {
    if (half == 0) {
        write_own(words);
        if (threadIdx.x == 0) store_release_sys(words + kFlag, 1);
    } else {
        pass(words, half, write_own, [](uint64_t*) {});
    }
}

__device__ uint64_t* stage() { return reinterpret_cast<uint64_t*>(dynamic_shared()); }

// Half 0 brings the words to a stage, from which the copy engine stores them.
template <class Fence, class Wait>
__device__ void store(uint64_t* words, int half, Fence fence, Wait wait) {
    pass(
        words, half,
        [=](uint64_t* to) {
            write_own(stage());
            fence();
            __syncthreads();
            if (threadIdx.x == 0) {
                bulk_store(to, stage(), 512);
                bulk_commit();
                wait();
            }
            __syncthreads();
            write_own(stage());
        },
        [](uint64_t* flag) { store_release_sys(flag, 1); });
}

__global__ void stored(uint64_t* words, int half) {
    store(words, half, fence_async_proxy, bulk_wait_written<0>);
}

__global__ void stored_but_not_there(uint64_t* words, int half) {
    store(words, half, fence_async_proxy_shared, bulk_wait_read<0>);
}

__global__ void stored_without_fence(uint64_t* words, int half) {
    store(words, half, [] {}, bulk_wait_written<0>);
}

__global__ void stage_written_again(uint64_t* words, int half) {
    store(words, half, fence_async_proxy, [] {});
}

// Half 1 has the copy engine load the words that half 0 wrote.
template <class Write, class Fence, class Wait>
__device__ void load(uint64_t* words, int half, Write write, Fence fence, Wait wait) {
    if (half == 0) return pass(words, half, write, [](uint64_t* flag) { store_release_sys(flag, 1); });
    uint64_t* barrier = stage() + 64;
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
        while (load_acquire_sys(words + kFlag) == 0) {
        }
        fence();
        barrier_arrive_expect(barrier, 512);
        bulk_load(stage(), words, 512, barrier);
    }
    __syncthreads();
    wait(barrier);
    words[128 + threadIdx.x] = stage()[threadIdx.x];
}

__device__ void wait_for(uint64_t* barrier) { barrier_wait(barrier, 0); }

__global__ void loaded(uint64_t* words, int half) { load(words, half, write_own, fence_async_proxy, wait_for); }

__global__ void loaded_after_writers_fence(uint64_t* words, int half) {
    auto write = [](uint64_t* to) {
        write_own(to);
        fence_async_proxy();
    };
    load(words, half, write, [] {}, wait_for);
}

// A fence for shared memory is none for the words.
__global__ void loaded_without_fence(uint64_t* words, int half) {
    load(words, half, write_own, fence_async_proxy_shared, wait_for);
}

__global__ void loaded_but_not_there(uint64_t* words, int half) {
    load(words, half, write_own, fence_async_proxy, [](uint64_t*) {});
}

// Two launches on a stream, of which the second begins early.
__global__ void after_previous(uint64_t* words, int half) {
    if (half == 1) await_previous_launch();
    words[threadIdx.x] = half;
}

__global__ void before_previous(uint64_t* words, int half) {
    words[threadIdx.x] = half;
    if (half == 1) await_previous_launch();
}

}  // namespace deepep::checks
