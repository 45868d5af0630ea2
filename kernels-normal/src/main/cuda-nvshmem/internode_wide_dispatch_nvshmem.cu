// Dispatch across large nodes through NVSHMEM. See internode_dispatch.cuh.
#define DEEPEP_NORMAL_WIDE
#include "deepep/network_nvshmem.cuh"
#include "internode/internode_dispatch.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_internode_wide_dispatch_nvshmem(const __grid_constant__ InternodeDispatchParams params) {
    internode_dispatch<Nvshmem>(params);
}

}  // namespace deepep::normal
