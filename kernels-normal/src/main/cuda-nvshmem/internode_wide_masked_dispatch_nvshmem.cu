// Dispatch across large nodes through NVSHMEM, while ranks may be masked. See internode_dispatch.cuh.
#define DEEPEP_NORMAL_WIDE
#include "internode/internode_dispatch.cuh"
#include "internode_nvshmem.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_internode_wide_masked_dispatch_nvshmem(const __grid_constant__ InternodeDispatchParams params) {
    internode_dispatch<Masked<OverNvshmem>>(params);
}

}  // namespace deepep::normal
