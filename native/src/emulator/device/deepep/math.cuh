// Stands in for the header of the same name.
#pragma once

namespace deepep {

inline float approximate_reciprocal(float v) { return 1.0f / v; }

inline uint32_t max_bf16x2(uint32_t a, uint32_t b) {
    auto is_nan = [](uint32_t v) { return (v & 0x7fff) > 0x7f80; };
    auto larger = [&](uint32_t x, uint32_t y) {
        if (is_nan(x) || is_nan(y)) return is_nan(x) ? y : x;
        return __uint_as_float(x << 16) < __uint_as_float(y << 16) ? y : x;
    };
    return larger(a & 0xffff, b & 0xffff) | larger(a >> 16, b >> 16) << 16;
}

}  // namespace deepep
