// Combine in FP8 on one large node: see normal_combine.cuh.
#define DEEPEP_NORMAL_WIDE
#include "normal_combine.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kServiceWarps * 32 + kMaxConsumers, 1)
    deepep_normal_wide_combine_fp8(const __grid_constant__ CombineParams p) {
    combine<Fp8Wire>(p);
}

}  // namespace deepep::normal
