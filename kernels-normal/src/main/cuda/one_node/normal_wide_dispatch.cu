// Dispatch on one large node: see normal_dispatch.cuh.
#define DEEPEP_NORMAL_WIDE
#include "normal_dispatch.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_normal_wide_dispatch(const __grid_constant__ DispatchParams p) {
    dispatch(p);
}

}  // namespace deepep::normal
