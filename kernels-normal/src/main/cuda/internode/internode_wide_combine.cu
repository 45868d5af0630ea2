// Combine across large nodes whose memory is mapped here: virtual nodes. See internode_combine.cuh.
#define DEEPEP_NORMAL_WIDE
#include "internode_combine.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kInternodeServiceWarps * 32 + kMaxConsumers, 1)
    deepep_internode_wide_combine(const __grid_constant__ InternodeCombineParams params) {
    internode_combine<PeerMemory, Bf16Wire>(params);
}

}  // namespace deepep::normal
