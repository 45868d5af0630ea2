// Combine in FP8 across large nodes through queues of a network card that it writes itself, while ranks may be masked.
// See internode_combine.cuh.
#define DEEPEP_NORMAL_WIDE
#include "internode_combine.cuh"
#include "internode_queues.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kInternodeServiceWarps * 32 + kMaxConsumers, 1)
    deepep_internode_wide_masked_ibgda_combine_fp8(const __grid_constant__ InternodeCombineParams params) {
    internode_combine<Masked<OverQueues>, Fp8Wire>(params);
}

}  // namespace deepep::normal
