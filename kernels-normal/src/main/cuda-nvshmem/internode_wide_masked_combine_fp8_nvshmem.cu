// Combine in FP8 across large nodes through NVSHMEM, while ranks may be masked. See internode_combine.cuh.
#define DEEPEP_NORMAL_WIDE
#include "internode/internode_combine.cuh"
#include "internode_nvshmem.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kInternodeServiceWarps * 32 + kMaxConsumers, 1)
    deepep_internode_wide_masked_combine_fp8_nvshmem(const __grid_constant__ InternodeCombineParams params) {
    internode_combine<Masked<OverNvshmem>, Fp8Wire>(params);
}

}  // namespace deepep::normal
