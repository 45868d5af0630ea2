// Eight bf16 at a time, a vector: read, summed in fp32, rounded once, written.
//
// Addresses are those of any bf16; vectors on 16 bytes are faster. load_vector and store_vector are for kernels that
// move many rows; load_vectors and store_unaligned keep the code of kernels short that take microseconds.
#pragma once

#include <cuda_bf16.h>

#include "deepep/memory.cuh"

namespace deepep {

// The element in the low half of word w / 2, then the one in its high half.
__device__ __forceinline__ float bf16_at(const uint4& v, int i) {
    uint32_t word = i < 2 ? v.x : i < 4 ? v.y : i < 6 ? v.z : v.w;
    return __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
}

__device__ __forceinline__ void add_vector(float* sum, uint4 v) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] += bf16_at(v, i);
}

__device__ __forceinline__ uint4 round_vector(const float* v) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        __nv_bfloat162 pair = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
        words[i] = *reinterpret_cast<uint32_t*>(&pair);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

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

template <int kNum>
struct Vectors {
    uint4 v[kNum];
};

// For rows that do not begin on 16 bytes, out of line and in loops.
template <int kNum, int kStride>
__device__ __noinline__ Vectors<kNum> load_unaligned(uint64_t address, uint64_t end) {
    Vectors<kNum> r = {};
#pragma unroll 1
    for (int i = 0; i < kNum * 4; ++i) {
        uint64_t word = address + i / 4 * kStride + i % 4 * 4;
        if (word < end)
            reinterpret_cast<uint32_t*>(r.v)[i] = at<const uint16_t>(word)[0] | at<const uint16_t>(word)[1] << 16;
    }
    return r;
}

// Not by __ldg: such a load may be moved before await_previous_launch, when what it reads may not be there.
template <int kNum, int kStride>
__device__ __forceinline__ Vectors<kNum> load_aligned(uint64_t address, uint64_t end) {
    Vectors<kNum> r;
#pragma unroll
    for (int i = 0; i < kNum; ++i) {
        r.v[i] = make_uint4(0, 0, 0, 0);
        if (address + i * kStride < end) r.v[i] = *at<const uint4>(address + i * kStride);
    }
    return r;
}

// kNum vectors, kStride bytes apart, of those that begin before `end`; the others are zero.
template <int kNum, int kStride>
__device__ __forceinline__ Vectors<kNum> load_vectors(uint64_t address, uint64_t end) {
    if ((address & 15) != 0) return load_unaligned<kNum, kStride>(address, end);
    return load_aligned<kNum, kStride>(address, end);
}

__device__ __noinline__ inline void store_unaligned(uint64_t address, uint4 v) {
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    for (int i = 0; i < 4; ++i) {
        at<uint16_t>(address + i * 4)[0] = static_cast<uint16_t>(words[i]);
        at<uint16_t>(address + i * 4)[1] = static_cast<uint16_t>(words[i] >> 16);
    }
}

}  // namespace deepep
