// The 10-bit logarithmic block format of the host's LogFmt10: 128 channels in f32 base, f32 step, 160 bytes of codes.
#pragma once

#include <cmath>

#include "deepep/bf16.cuh"
#include "lowlatency_params.cuh"

namespace deepep::lowlatency {

constexpr int kLogCodesOffset = 8;
constexpr int kLogLanes = 16;  // of a block; each has 8 channels, 10 bytes of codes
constexpr int kLogLaneBytes = 10;
constexpr int kLargestCode = 511;
constexpr float kLogRange = 32;  // octaves below the largest magnitude

// Encodes the lane's 8 channels of a block that 16 neighbouring lanes share; all lanes of the warp. block: in shared
// memory, 8-byte aligned; nothing is written unless `active`, which the lanes of a block have in common.
__device__ inline void encode_log(const uint4& v, uint8_t* block, bool active) {
    // Magnitudes of bf16 order like their bits. Least 1 is subtracted, so that a zero is not the smallest.
    uint32_t largest = 0, smallest = ~0u;
#pragma unroll
    for (uint32_t word : {v.x, v.y, v.z, v.w}) {
        uint32_t magnitudes = word & 0x7fff7fff;
        largest = __vmaxu2(largest, magnitudes);
        smallest = __vminu2(smallest, __vsub2(magnitudes, 0x00010001));
    }
#pragma unroll
    for (int step = 1; step < kLogLanes; step *= 2) {
        largest = __vmaxu2(largest, __shfl_xor_sync(~0u, largest, step));
        smallest = __vminu2(smallest, __shfl_xor_sync(~0u, smallest, step));
    }
    largest = max(largest & 0xffff, largest >> 16);
    smallest = min(smallest & 0xffff, smallest >> 16) + 1;
    bool finite = largest < 0x7f80, coded = finite && largest > 0;
    float top = __log2f(__uint_as_float(largest << 16));
    float base = coded ? fmaxf(__log2f(__uint_as_float(smallest << 16)), top - kLogRange) : finite ? 0.0f : NAN;
    float range = coded ? fmaxf(top - base, 0.0f) : 0.0f;
    float per_octave = range > 0 ? __fdividef(kLargestCode - 1, range) : 0.0f;
    uint32_t code[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float value = bf16_at(v, i), octaves = __log2f(fabsf(value)) - base;
        uint32_t c = __float2uint_rn(fminf(fmaxf(1 + rintf(octaves * per_octave), 1.0f), kLargestCode));
        if (octaves < -1) c = 0;  // nearer to zero than to the smallest code
        code[i] = coded ? c | __float_as_uint(value) >> 31 << 9 : 0;
    }
    if (!active) return;
    int lane = threadIdx.x % kLogLanes;
    if (lane == 0) *reinterpret_cast<float2*>(block) = make_float2(base, range / (kLargestCode - 1));
    auto to = reinterpret_cast<uint16_t*>(block + kLogCodesOffset + lane * kLogLaneBytes);
#pragma unroll
    for (int i = 0; i < 5; ++i) {  // 16 bits begin in code 16 i / 10 and end in the next or its next
        int first = i * 16 / 10, shift = i * 16 % 10;
        uint32_t bits = code[first] >> shift | code[first + 1] << (10 - shift);
        if (first + 2 < 8) bits |= code[first + 2] << (20 - shift);
        to[i] = static_cast<uint16_t>(bits);
    }
}

// What a lane reads of its share of a block.
struct LogLane {
    float2 scale;  // base, step
    uint32_t words[3];
};

__device__ __forceinline__ LogLane load_log(uint64_t block) {
    LogLane v;
    int first = kLogCodesOffset + threadIdx.x % kLogLanes * kLogLaneBytes;
    v.scale = *at<const float2>(block);
    auto words = at<const uint32_t>(block + (first & ~3));
#pragma unroll
    for (int i = 0; i < 3; ++i) v.words[i] = words[i];
    return v;
}

// An odd lane's codes begin in the middle of a word: moves them to its beginning. Once, before log_value.
__device__ __forceinline__ void align_log(LogLane& v) {
    int shift = (threadIdx.x & 1) * 16;
    v.words[0] = __funnelshift_r(v.words[0], v.words[1], shift);
    v.words[1] = __funnelshift_r(v.words[1], v.words[2], shift);
    v.words[2] >>= shift;
}

// Channel i of the lane's eight. The code is short, because the first warp to come here waits for every line of it.
__device__ __forceinline__ float log_value(const LogLane& v, int i) {
    int word = i * 10 / 32, bit = i * 10 % 32;
    uint32_t code = __funnelshift_r(v.words[word], v.words[min(word + 1, 2)], bit);
    int c = code & kLargestCode;
    float magnitude = exp2f(fmaf(c - 1, v.scale.y, v.scale.x));
    if (c == 0) magnitude = v.scale.x * 0.0f;  // NaN stays NaN
    return __uint_as_float(__float_as_uint(magnitude) ^ (code << 22 & 0x80000000u));
}

}  // namespace deepep::lowlatency
