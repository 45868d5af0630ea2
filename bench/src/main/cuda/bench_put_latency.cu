// How long a message takes to another rank: one that is sent to and fro.
//
// Two ranks, one warp each. The lower rank puts a message, the other answers with one when its flag has come; num_rows
// times. Reads: the flag alone, of which the policy promises that the message lies there. Launch: one block of 32
// threads on either rank, at the same time.
#include "bench_put.cuh"

namespace deepep::bench {

extern "C" __global__ void __launch_bounds__(32, 1) deepep_bench_put_latency(const __grid_constant__ PutParams p) {
    bool first = p.network.node < p.peer;
    for (int i = 0; i < p.num_rows; ++i) {
        uint64_t value = p.epoch + i;
        if (!first) await_flag(p, p.peer, 0, value);
        send_row(p, p.peer, 0, p.row_bytes, 0, value);
        if (first) await_flag(p, p.peer, 0, value);
    }
}

}  // namespace deepep::bench
