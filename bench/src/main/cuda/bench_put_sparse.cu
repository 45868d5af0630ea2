// The traffic of a sparse dispatch and combine and nothing else: every rank puts num_rows rows of row_bytes to each
// other rank, each with a signal, and when all rows have come to it puts as many of return_bytes back.
//
// Slots and flags: [phase][peer's rows]. Rows go round the warps of all blocks, neighbours to different ranks.
// A warp waits for the rows whose answers it sends; at the end each has waited for its part of the answers. Launch: any
// number of blocks of whole warps on all ranks at the same time, resident together.
#include "bench_put.cuh"

namespace deepep::bench {

extern "C" __global__ void __launch_bounds__(kMaxWarps * 32, 1)
    deepep_bench_put_sparse(const __grid_constant__ PutParams p) {
    int num_warps = blockDim.x / 32, first = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    int num_peers = p.network.num_nodes - 1, num_items = p.num_rows * num_peers;
    for (int phase = 0; phase < 3; ++phase)
        for (int i = first; i < num_items; i += gridDim.x * num_warps) {
            int peer = (p.network.node + 1 + i % num_peers) % p.network.num_nodes, row = i / num_peers;
            if (phase > 0) await_flag(p, peer, (phase - 1) * p.num_rows + row, p.epoch);
            if (phase == 2) continue;
            uint64_t slot = static_cast<uint64_t>(phase) * p.num_rows + row;
            send_row(p, peer, slot, phase == 0 ? p.row_bytes : p.return_bytes, slot, p.epoch);
        }
}

}  // namespace deepep::bench
