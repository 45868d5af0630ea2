// Lets the ranks' streams go on together: a barrier of all ranks, then a pause in which every host enqueues what is to
// be timed, so that the launch itself is not.
//
// Writes this rank's word in every rank's flags, reads all words of its own; with no ranks it touches no memory. Flags:
// one 128-byte line per rank, zeroed once; epochs grow by one with each gate. Launch: 1 block of 32 threads, which go
// round the ranks, no shared memory. A rank that never comes ends the wait after timeout_ns; the operation behind the
// gate then reports it.
#include "bench_structs.cuh"
#include "deepep/memory.cuh"

namespace deepep::bench {

extern "C" __global__ void __launch_bounds__(32, 1) deepep_bench_gate(const __grid_constant__ GateParams p) {
    const uint64_t* flags = at<const uint64_t>(p.flags);
    const uint64_t deadline = now_ns() + p.timeout_ns;
    for (int peer = threadIdx.x; peer < p.num_ranks; peer += 32) {
        // release; pairs with the acquire below, at the peer
        store_release_sys(at<uint64_t>(flags[peer], p.rank * kFlagStrideBytes), p.epoch);
    }
    for (int peer = threadIdx.x; peer < p.num_ranks; peer += 32) {
        const uint64_t* word = at<const uint64_t>(flags[p.rank], peer * kFlagStrideBytes);
        while (load_acquire_sys(word) < p.epoch && now_ns() < deadline) {
        }
    }
    __syncwarp();
    uint64_t open = now_ns() + p.pause_ns;
    while (now_ns() < open) {
    }
}

}  // namespace deepep::bench
