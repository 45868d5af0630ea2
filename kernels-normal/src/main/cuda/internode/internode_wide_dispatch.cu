// Dispatch across large nodes whose memory is mapped here: virtual nodes. See internode_dispatch.cuh.
#define DEEPEP_NORMAL_WIDE
#include "internode_dispatch.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_internode_wide_dispatch(const __grid_constant__ InternodeDispatchParams params) {
    internode_dispatch<PeerMemory>(params);
}

}  // namespace deepep::normal
