// bf16 as the device rounds it: to the nearest, ties to even.
#pragma once

#include "cuda_on_host.h"

struct __nv_bfloat16 {
    uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

inline __nv_bfloat16 __float2bfloat16(float v) {
    uint32_t bits = __float_as_uint(v);
    if (v != v) return {0x7fff};
    return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline float __bfloat162float(__nv_bfloat16 v) { return __uint_as_float(static_cast<uint32_t>(v.bits) << 16); }

inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16(x), __float2bfloat16(y)}; }
