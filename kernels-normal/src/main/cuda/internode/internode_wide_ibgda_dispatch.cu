// Dispatch across large nodes through queues of a network card that it writes itself. See internode_dispatch.cuh.
#define DEEPEP_NORMAL_WIDE
#include "deepep/network_ibgda.cuh"
#include "internode_dispatch.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_internode_wide_ibgda_dispatch(const __grid_constant__ InternodeDispatchParams params) {
    internode_dispatch<Ibgda>(params);
}

}  // namespace deepep::normal
