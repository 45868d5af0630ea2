// The cast of bf16 to fp8 (e4m3) with a scale per 128 channels, bit for bit as the host's RowMath.castFp8.
#pragma once

#include <cuda_fp8.h>

#include <cfloat>

#include "deepep/bf16.cuh"
#include "lowlatency_params.cuh"

namespace deepep::lowlatency {

constexpr int kLaneChannels = 16;                            // that one lane casts
constexpr int kScaleLanes = kScaleChannels / kLaneChannels;  // that share a scale

struct Fp8Lane {
    uint4 codes;
    float scale;
};

// Casts the lane's 16 channels; neighbouring lanes in eights share a scale. All lanes of the warp.
__device__ __forceinline__ Fp8Lane cast_fp8(const uint4& low, const uint4& high, bool power_of_two) {
    float v[kLaneChannels], amax = 1e-4f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        v[i] = bf16_at(low, i);
        v[8 + i] = bf16_at(high, i);
    }
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i) amax = fmaxf(amax, fabsf(v[i]));  // leaves NaN out
#pragma unroll
    for (int step = 1; step < kScaleLanes; step *= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, step));
    amax = fminf(amax, FLT_MAX);
    float scale, multiplier;
    if (power_of_two) {
        uint32_t bits = __float_as_uint(__fdiv_rn(amax, 448.0f));
        scale = __uint_as_float(((bits >> 23) + ((bits & 0x7fffff) != 0)) << 23);  // the next power of two
        multiplier = __fdiv_rn(1.0f, scale);
    } else {
        scale = __fmul_rn(amax, 1.0f / 448.0f);
        multiplier = __fdiv_rn(448.0f, amax);
    }
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        uint32_t pair[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float2 two =
                make_float2(__fmul_rn(v[4 * i + 2 * j], multiplier), __fmul_rn(v[4 * i + 2 * j + 1], multiplier));
            pair[j] = __nv_cvt_float2_to_fp8x2(two, __NV_SATFINITE, __NV_E4M3);
        }
        words[i] = pair[0] | pair[1] << 16;
    }
    return {make_uint4(words[0], words[1], words[2], words[3]), scale};
}

// The scales of four neighbouring lanes, which are powers of two, as one word: biased exponents, the first in the
// lowest byte. All lanes of the warp; the first of the four has the result. A lane without a scale has 0.
__device__ __forceinline__ uint32_t pack_ue8m0(uint32_t scale_bits) {
    uint32_t packed = (scale_bits >> 23) << (8 * (threadIdx.x % 4));
    packed |= __shfl_xor_sync(~0u, packed, 1);
    return packed | __shfl_xor_sync(~0u, packed, 2);
}

}  // namespace deepep::lowlatency
