// Lets the ranks' streams go on together: a barrier of all ranks, then a pause in which every host enqueues what is to
// be timed, so that the launch itself is not.
//
// Writes this rank's word in every rank's flags, reads all words of its own. Flags: one 128-byte line per rank, zeroed
// once; epochs grow by one with each gate. Launch: 1 block of 32 threads, no shared memory. A rank that never comes
// ends the wait after timeout_ns; the operation behind the gate then reports it.
#include "deepep/memory.cuh"

namespace {

constexpr int kMaxRanks = 8;
constexpr uint64_t kLineBytes = 128;

// Written by Gate.java.
struct GateParams {
    uint64_t flags[kMaxRanks];  // every rank's, as this GPU sees them
    uint64_t epoch;
    uint64_t pause_ns;
    uint64_t timeout_ns;
    int32_t rank;
    int32_t num_ranks;
};

static_assert(sizeof(GateParams) == 96);

}  // namespace

extern "C" __global__ void __launch_bounds__(32, 1) deepep_bench_gate(const __grid_constant__ GateParams p) {
    const int peer = threadIdx.x;
    if (peer < p.num_ranks) {
        uint64_t deadline = deepep::now_ns() + p.timeout_ns;
        // release; pairs with the acquire below, at the peer
        deepep::store_release_sys(deepep::at<uint64_t>(p.flags[peer], p.rank * kLineBytes), p.epoch);
        const uint64_t* word = deepep::at<const uint64_t>(p.flags[p.rank], peer * kLineBytes);
        while (deepep::load_acquire_sys(word) < p.epoch && deepep::now_ns() < deadline) {
        }
    }
    __syncwarp();
    uint64_t open = deepep::now_ns() + p.pause_ns;
    while (deepep::now_ns() < open) {
    }
}
