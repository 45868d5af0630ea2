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

template <bool kWaits>
__device__ void copy(uint64_t* words, int half) {
    auto stage = reinterpret_cast<uint64_t*>(dynamic_shared());
    pass(
        words, half,
        [=](uint64_t* to) {
            stage[threadIdx.x] = threadIdx.x;
            __syncthreads();
            if (threadIdx.x != 0) return;
            bulk_store(to, stage, 512);
            bulk_commit();
            kWaits ? bulk_wait_written() : bulk_wait_read<0>();
        },
        [](uint64_t* flag) { store_release_sys(flag, 1); });
}

__global__ void copied(uint64_t* words, int half) { copy<true>(words, half); }

__global__ void copied_from_there(uint64_t* words, int half) { copy<false>(words, half); }

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
