// Waiting for a word of another block or GPU, never longer than a deadline.
#pragma once

#include "deepep/memory.cuh"
#include "deepep/status.cuh"

namespace deepep {

// Spins until *word carries `epoch` in its low half; `seen` is the word read last.
// kOk: it does, and what its writer did before the release is visible here. kTimeout: the deadline passed.
// kOutOfStep: the word carries a later epoch.
template <bool kSystem>
__device__ __forceinline__ Code wait_word(const uint64_t* word, uint32_t epoch, uint64_t deadline_ns, uint64_t& seen) {
    for (uint32_t spins = 0;; ++spins) {
        seen = kSystem ? load_acquire_sys(word) : load_acquire_gpu(word);
        int32_t ahead = static_cast<int32_t>(word_epoch(seen) - epoch);
        if (ahead == 0) return kOk;
        if (ahead > 0) return kOutOfStep;
        if ((spins & 63) == 63 && now_ns() > deadline_ns) return kTimeout;
    }
}

}  // namespace deepep
