// Parts of a row where vectors cannot be used.
#pragma once

#include "deepep/memory.cuh"

namespace deepep::normal {

// Copies num_bytes (a multiple of 4) from any address, by one warp.
__device__ inline void copy_unaligned(uint8_t* to, uint64_t from, int num_bytes, int lane) {
    if ((from & 3) == 0) {
        for (int i = lane; i < num_bytes / 4; i += 32) reinterpret_cast<uint32_t*>(to)[i] = at<const uint32_t>(from)[i];
    } else {
        for (int i = lane; i < num_bytes; i += 32) to[i] = at<const uint8_t>(from)[i];
    }
}

}  // namespace deepep::normal
