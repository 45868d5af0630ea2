// Dispatch across nodes through NVSHMEM, while ranks may be masked. See internode_dispatch.cuh.
#include "internode/internode_dispatch.cuh"
#include "internode_nvshmem.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_internode_masked_dispatch_nvshmem(const __grid_constant__ InternodeDispatchParams params) {
    internode_dispatch<Masked<OverNvshmem>>(params);
}

}  // namespace deepep::normal
