// Combine in FP8 across large nodes through NVSHMEM. See internode_combine.cuh.
#define DEEPEP_NORMAL_WIDE
#include "deepep/network_nvshmem.cuh"
#include "internode/internode_combine.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kInternodeServiceWarps * 32 + kMaxConsumers, 1)
    deepep_internode_wide_combine_fp8_nvshmem(const __grid_constant__ InternodeCombineParams params) {
    internode_combine<Nvshmem, Fp8Wire>(params);
}

}  // namespace deepep::normal
