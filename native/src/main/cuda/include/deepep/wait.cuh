// Waiting for a word of another block of the same launch, never longer than a deadline.
#pragma once

#include "deepep/memory.cuh"
#include "deepep/status.cuh"

namespace deepep {

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
