// Eight bf16 at a time, summed in fp32.
#pragma once

#include <cuda_bf16.h>

#include "deepep/memory.cuh"

namespace deepep::normal {

__device__ __forceinline__ void add_vector(float* sum, uint4 v) {
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        sum[2 * i] += __uint_as_float(words[i] << 16);
        sum[2 * i + 1] += __uint_as_float(words[i] & 0xffff0000u);
    }
}

// From any address of a bf16.
__device__ inline uint4 load_vector(uint64_t address) {
    if ((address & 15) == 0) return __ldg(at<const uint4>(address));
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        auto half = at<const uint16_t>(address + i * 4);
        words[i] = half[0] | static_cast<uint32_t>(half[1]) << 16;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ inline uint4 round_vector(const float* sum) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        __nv_bfloat162 pair = __floats2bfloat162_rn(sum[2 * i], sum[2 * i + 1]);
        words[i] = *reinterpret_cast<uint32_t*>(&pair);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// To any address of a bf16.
__device__ inline void store_vector(uint64_t address, uint4 v) {
    if ((address & 15) == 0) {
        __stcs(at<uint4>(address), v);
        return;
    }
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        at<uint16_t>(address + i * 4)[0] = static_cast<uint16_t>(words[i]);
        at<uint16_t>(address + i * 4)[1] = static_cast<uint16_t>(words[i] >> 16);
    }
}

}  // namespace deepep::normal
