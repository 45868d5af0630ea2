// Instructions that CUDA C++ has no name for.
#pragma once

namespace deepep {

// 1 / v, wrong by one unit in the last place at most; denormals count as zero.
__device__ __forceinline__ float approximate_reciprocal(float v) {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(v));
    return inverse;
}

}  // namespace deepep
