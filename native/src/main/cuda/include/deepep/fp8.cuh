// Casts between bf16 and fp8 (e4m3) with a scale per 128 channels, bit for bit as the host's RowMath.castFp8 and
// addScaledFp8.
#pragma once

#include <cuda_fp8.h>

#include <cfloat>

#include "deepep/bf16.cuh"
#include "deepep/math.cuh"

namespace deepep {

constexpr int kFp8ScaleChannels = 128;  // that share a scale

// Of the channels that a lane has: their codes and their scale.
template <int kVectors>
struct Fp8Lane {
    uint32_t words[kVectors * 2];
    float scale;
};

// Casts the lane's vectors of bf16; as many neighbouring lanes share a scale as have its channels.
// All lanes of the warp.
template <int kVectors>
__device__ __forceinline__ Fp8Lane<kVectors> cast_fp8(const Vectors<kVectors>& x, bool power_of_two) {
    constexpr int kChannels = kVectors * 8;
    float v[kChannels];
#pragma unroll
    for (int i = 0; i < kChannels; ++i) v[i] = bf16_at(x.v[i / 8], i % 8);
    uint32_t largest = 0;  // of the channels in even places, and in odd ones
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
        const uint32_t words[4] = {x.v[i].x, x.v[i].y, x.v[i].z, x.v[i].w};
#pragma unroll
        for (int w = 0; w < 4; ++w) largest = max_bf16x2(largest, words[w] & 0x7fff7fff);  // leaves NaN out
    }
    float amax = fmaxf(fmaxf(1e-4f, __uint_as_float(largest << 16)), __uint_as_float(largest & 0xffff0000u));
#pragma unroll
    for (int step = 1; step < kFp8ScaleChannels / kChannels; step *= 2)
        amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, step));
    amax = fminf(amax, FLT_MAX);
    Fp8Lane<kVectors> lane;
    float multiplier;
    if (power_of_two) {
        uint32_t bits = __float_as_uint(__fdiv_rn(amax, 448.0f));
        lane.scale = __uint_as_float(((bits >> 23) + ((bits & 0x7fffff) != 0)) << 23);  // the next power of two
        multiplier = __fdiv_rn(1.0f, lane.scale);
    } else {
        lane.scale = __fmul_rn(amax, 1.0f / 448.0f);
        multiplier = __fdiv_rn(448.0f, amax);
    }
#pragma unroll
    for (int i = 0; i < kVectors * 2; ++i) {
        uint32_t pair[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float2 two =
                make_float2(__fmul_rn(v[4 * i + 2 * j], multiplier), __fmul_rn(v[4 * i + 2 * j + 1], multiplier));
            pair[j] = __nv_cvt_float2_to_fp8x2(two, __NV_SATFINITE, __NV_E4M3);
        }
        lane.words[i] = pair[0] | pair[1] << 16;
    }
    return lane;
}

// Adds the values of a word's four codes, times a factor: their scale, or that times a weight. One rounding
// for each.
__device__ __forceinline__ void add_scaled_fp8(float* sum, uint32_t word, float factor) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        auto pair = static_cast<__nv_fp8x2_storage_t>(word >> (16 * i));
        float2 two = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3)));
        sum[2 * i] = __fmaf_rn(two.x, factor, sum[2 * i]);
        sum[2 * i + 1] = __fmaf_rn(two.y, factor, sum[2 * i + 1]);
    }
}

// The scales of four neighbouring lanes, which are powers of two, as one word: biased exponents, the first in the
// lowest byte. All lanes of the warp; the first of the four has the result. A lane without a scale has 0.
__device__ __forceinline__ uint32_t pack_ue8m0(uint32_t scale_bits) {
    uint32_t packed = (scale_bits >> 23) << (8 * (threadIdx.x % 4));
    packed |= __shfl_xor_sync(~0u, packed, 1);
    return packed | __shfl_xor_sync(~0u, packed, 2);
}

}  // namespace deepep
