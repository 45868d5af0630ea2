// Dispatch across large nodes through queues of a network card that it writes itself, while ranks may be masked. See
// internode_dispatch.cuh.
#define DEEPEP_NORMAL_WIDE
#include "internode_dispatch.cuh"
#include "internode_queues.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_internode_wide_masked_ibgda_dispatch(const __grid_constant__ InternodeDispatchParams params) {
    internode_dispatch<Masked<OverQueues>>(params);
}

}  // namespace deepep::normal
