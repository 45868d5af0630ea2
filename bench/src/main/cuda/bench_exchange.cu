// What the links between the ranks can do: every rank copies rows to (push) or from (pull) every other rank by bulk
// copies and does nothing else. The yardstick of dispatch, which pushes, and of combine, which pulls.
//
// Each rank's memory is a source half and a target half, both [num_ranks][rows] rows. Push: own source [peer][i] to the
// peer's target [rank][i]. Pull: the peer's source [rank][i] to own target [peer][i]. A single rank copies to itself.
// Nobody waits for anybody: the host brings the ranks together. Launch: any number of blocks, num_warps warps each;
// dynamic shared memory: num_warps * kStages * row_bytes. row_bytes is a multiple of 16.
#include "bench_structs.cuh"
#include "deepep/block.cuh"
#include "deepep/bulk_copy.cuh"
#include "deepep/memory.cuh"

namespace deepep::bench {

extern "C" __global__ void __launch_bounds__(kMaxWarps * 32, 1)
    deepep_bench_exchange(const __grid_constant__ ExchangeParams p) {
    uint8_t* shared = dynamic_shared();
    __shared__ uint64_t loaded[kMaxWarps * kStages];
    const int warp = threadIdx.x / 32;
    const int num_warps = blockDim.x / 32;
    if (threadIdx.x % 32 != 0) return;  // one thread of a warp drives its copies

    uint8_t* stages = shared + static_cast<size_t>(warp) * kStages * p.row_bytes;
    uint64_t* barriers = loaded + warp * kStages;
    for (int s = 0; s < kStages; ++s) barrier_init(&barriers[s], 1);
    barrier_init_fence();

    const uint64_t* memory = at<const uint64_t>(p.memory);
    const int num_peers = p.num_ranks > 1 ? p.num_ranks - 1 : 1;
    const int num_copies = p.rows * num_peers;
    uint32_t parities = 0;  // bit s: the phase of stage s
    int s = 0;
    // Neighbouring warps take different peers, so that all links are busy all the time.
    for (int i = blockIdx.x * num_warps + warp; i < num_copies; i += gridDim.x * num_warps, s = (s + 1) % kStages) {
        const int peer = (p.rank + 1 + i % num_peers) % p.num_ranks;
        const uint64_t at_rank = (static_cast<uint64_t>(p.rank) * p.rows + i / num_peers) * p.row_bytes;
        const uint64_t at_peer = (static_cast<uint64_t>(peer) * p.rows + i / num_peers) * p.row_bytes;
        const auto* from = at<const uint8_t>(memory[p.pull ? peer : p.rank], p.pull ? at_rank : at_peer);
        auto* to = at<uint8_t>(memory[p.pull ? p.rank : peer], p.target_offset + (p.pull ? at_peer : at_rank));
        uint8_t* stage = stages + s * p.row_bytes;
        bulk_wait_read<kStages - 1>();  // the store before last has left this stage
        barrier_arrive_expect(&barriers[s], p.row_bytes);
        bulk_load(stage, from, p.row_bytes, &barriers[s]);
        barrier_wait(&barriers[s], parities >> s & 1);
        parities ^= 1u << s;
        bulk_store(to, stage, p.row_bytes);
        bulk_commit();
    }
    bulk_wait_written();
}

}  // namespace deepep::bench
