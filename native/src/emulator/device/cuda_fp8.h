// fp8 (e4m3) as the device rounds it: to the nearest, ties to even, beyond the largest to the largest.
#pragma once

#include "cuda_on_host.h"

enum __nv_saturation_t { __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3 };
using __nv_fp8x2_storage_t = uint16_t;

namespace deepep::emulator {

inline uint8_t to_e4m3(float v) {
    uint8_t sign = __float_as_uint(v) >> 31 << 7;
    float magnitude = fabsf(v);
    if (v != v) return 0x7f;
    if (magnitude >= 448) return sign | 0x7e;
    int exponent;
    frexpf(magnitude, &exponent);            // magnitude in [2^(exponent - 1), 2^exponent)
    if (magnitude < 0x1p-6f) exponent = -5;  // subnormal
    int units = static_cast<int>(nearbyintf(ldexpf(magnitude, 4 - exponent)));  // of 2^(exponent - 4)
    return sign | static_cast<uint8_t>((exponent + 5) * 8 + units);
}

}  // namespace deepep::emulator

inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, __nv_saturation_t, __nv_fp8_interpretation_t) {
    return deepep::emulator::to_e4m3(v.x) | deepep::emulator::to_e4m3(v.y) << 8;
}

// A pair of halves, as the numbers that they stand for: e4m3 has no others.
struct __half2_raw {
    float2 values;
};

struct __half2 {
    __half2_raw raw;

    explicit __half2(__half2_raw r) : raw(r) {}
};

inline float2 __half22float2(__half2 v) { return v.raw.values; }

struct __nv_fp8_e4m3 {
    uint8_t bits;

    explicit operator float() const {
        int exponent = bits >> 3 & 15, units = bits & 7;
        if ((bits & 0x7f) == 0x7f) return NAN;
        float magnitude = exponent == 0 ? ldexpf(units, -9) : ldexpf(8 + units, exponent - 10);
        return bits & 0x80 ? -magnitude : magnitude;
    }
};

inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t two, __nv_fp8_interpretation_t) {
    auto value = [](int code) { return static_cast<float>(__nv_fp8_e4m3{static_cast<uint8_t>(code)}); };
    return {make_float2(value(two & 0xff), value(two >> 8))};
}
