// Combine across large nodes through queues of a network card that it writes itself. See internode_combine.cuh.
#define DEEPEP_NORMAL_WIDE
#include "deepep/network_ibgda.cuh"
#include "internode_combine.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kInternodeServiceWarps * 32 + kMaxConsumers, 1)
    deepep_internode_wide_ibgda_combine(const __grid_constant__ InternodeCombineParams params) {
    internode_combine<Ibgda, Bf16Wire>(params);
}

}  // namespace deepep::normal
