// How fast one rank puts messages of one size to another: the yardstick of bandwidth.
//
// Every warp puts num_rows messages of row_bytes to `peer`, each over the one before, in a slot and with a flag of its
// own. Ends when all lie at the peer. Launch: any number of blocks of whole warps, as many slots as warps; no shared
// memory. Nobody waits for anybody.
#include "bench_put.cuh"

namespace deepep::bench {

extern "C" __global__ void __launch_bounds__(kMaxWarps * 32, 1) deepep_bench_put(const __grid_constant__ PutParams p) {
    uint64_t warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    for (int i = 0; i < p.num_rows; ++i) send_row(p, p.peer, warp, p.row_bytes, warp, p.epoch + i);
    __syncthreads();
    if (threadIdx.x == 0) Policy::quiet(p.network);
}

}  // namespace deepep::bench
