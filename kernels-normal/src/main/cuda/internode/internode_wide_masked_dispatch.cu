// Dispatch across large virtual nodes while ranks may be masked. See internode_dispatch.cuh.
#define DEEPEP_NORMAL_WIDE
#include "internode_dispatch.cuh"
#include "internode_masks.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_internode_wide_masked_dispatch(const __grid_constant__ InternodeDispatchParams params) {
    internode_dispatch<Masked<OverMemory>>(params);
}

}  // namespace deepep::normal
