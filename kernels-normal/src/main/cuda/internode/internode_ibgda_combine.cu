// Combine across nodes through queues of a network card that it writes itself. See internode_combine.cuh.
#include "deepep/network_ibgda.cuh"
#include "internode_combine.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kInternodeServiceWarps * 32 + kMaxConsumers, 1)
    deepep_internode_ibgda_combine(const __grid_constant__ InternodeCombineParams params) {
    internode_combine<Ibgda, Bf16Wire>(params);
}

}  // namespace deepep::normal
