// Instructions that CUDA C++ has no name for.
#pragma once

namespace deepep {

// 1 / v, wrong by one unit in the last place at most; denormals count as zero.
__device__ __forceinline__ float approximate_reciprocal(float v) {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(v));
    return inverse;
}

// The larger of each pair of bf16; NaN only where both are.
__device__ __forceinline__ uint32_t max_bf16x2(uint32_t a, uint32_t b) {
    uint32_t larger;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}

}  // namespace deepep
