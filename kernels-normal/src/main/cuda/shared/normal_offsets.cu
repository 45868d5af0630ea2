// Where each local expert begins in the expanded layout: the running sum of the aligned counts.
//
// Launched after the dispatch on its stream, by each rank for itself. Reads: counts i32 [num_experts]. Writes: offsets
// i32 [num_experts + 1].
//
// Launch: one block of one warp; no dynamic shared memory.
#include <cstdint>

#include "deepep/memory.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(32, 1)
    deepep_normal_offsets(const int32_t* counts, int32_t* offsets, int32_t num_experts) {
    await_previous_launch();
    int lane = threadIdx.x;
    int32_t before = 0;
    for (int first = 0; first < num_experts; first += 32) {
        int32_t own = first + lane < num_experts ? counts[first + lane] : 0, sum = own;
        for (int step = 1; step < 32; step *= 2) {
            int32_t other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += other;
        }
        if (first + lane < num_experts) offsets[first + lane] = before + sum - own;
        before += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0) offsets[num_experts] = before;
}

}  // namespace deepep::normal
