// See nvshmem.h.
#pragma once

#include "nvshmem.h"

inline void nvshmemx_putmem_signal_nbi_warp(void* target, const void* source, size_t num_bytes, uint64_t* signal,
                                            uint64_t value, int, int pe) {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        nvshmemi_device_state_d.post(blockIdx.x, pe, target, source, num_bytes, signal, value);
    __syncwarp();
}

inline void nvshmemx_putmem_nbi_warp(void* target, const void* source, size_t num_bytes, int pe) {
    nvshmemx_putmem_signal_nbi_warp(target, source, num_bytes, nullptr, 0, NVSHMEM_SIGNAL_SET, pe);
}

inline void nvshmemx_signal_op(uint64_t* signal, uint64_t value, int, int pe) {
    nvshmemi_device_state_d.post(blockIdx.x, pe, nullptr, nullptr, 0, signal, value);
}
