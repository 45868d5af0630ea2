// What kernels call of the emulated NVSHMEM. Its host library writes this into every module that is registered.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepep::emulator {

struct NvshmemCalls {
    // Posts to the queue of a block to a PE: `num_bytes` from `source` to the PE's `target`, then the PE's signal, if
    // one is given.
    void (*post)(int block, int pe, void* target, const void* source, size_t num_bytes, uint64_t* signal,
                 uint64_t value);
    // Waits until everything posted has arrived.
    void (*quiet)();
};

}  // namespace deepep::emulator
