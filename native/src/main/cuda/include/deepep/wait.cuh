// Waiting: for a word of another block of the same launch, never longer than a deadline; and what waits for other ranks
// have in common.
#pragma once

#include "deepep/memory.cuh"
#include "deepep/status.cuh"

namespace deepep {

// Between looks at what the host and others say of a rank that is waited for, and before the first. Thousands of
// threads may wait at once, and the host's memory is far: asked by all of them every 50 us, it held up calls of 300 us
// for milliseconds.
constexpr uint64_t kAskNs = 1 << 19;

// Spins until *word carries `number` in its low half: then what its writer did before the release is visible here.
// False if the deadline passed. `seen` is the word read last.
__device__ __forceinline__ bool await_block(const uint64_t* word, uint32_t number, uint64_t deadline_ns,
                                            uint64_t& seen) {
    for (uint32_t spins = 1;; ++spins) {
        seen = load_acquire_gpu(word);
        if (word_epoch(seen) == number) return true;
        if (spins % 64 == 0 && now_ns() > deadline_ns) return false;
    }
}

}  // namespace deepep
