// Dispatch on one node: see normal_dispatch.cuh.
#include "normal_dispatch.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_normal_dispatch(const __grid_constant__ DispatchParams p) {
    dispatch(p);
}

}  // namespace deepep::normal
