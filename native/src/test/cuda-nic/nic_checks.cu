// Kernels that reach their peers through the policy Ibgda, over a card in software.
#include "deepep/network_ibgda.cuh"
#include "nic_check_structs.cuh"

namespace deepep {

constexpr int kLanes = 32, kParts = 4;

// One warp; runs the commands in order, the first lanes of the warp those of a put together.
extern "C" __global__ void deepep_nic_script(const __grid_constant__ NicScript p) {
    for (int i = 0; i < p.num_commands; ++i) {
        const NicCommand c = at<const NicCommand>(p.commands)[i];
        uint64_t lane = threadIdx.x;
        bool active = lane < c.num_lanes;
        if (c.kind == kNicPut) Ibgda::put(p.net, active, c.node, c.cells, c.offset + lane * c.stride, c.num_bytes);
        if (c.kind == kNicPutSignal)
            Ibgda::put_signal(p.net, active, c.node, c.cells, c.offset + lane * c.stride, c.num_bytes, c.flags,
                              c.flag_offset + lane * 8, c.value + lane);
        if (c.kind == kNicSignal && lane == 0) Ibgda::signal(p.net, c.node, c.flags, c.flag_offset, c.value);
        if (c.kind == kNicQuiet && lane == 0) Ibgda::quiet(p.net);
        __syncwarp();
    }
}

__device__ __forceinline__ uint64_t pattern(int node, uint64_t channel, uint64_t round, uint64_t word) {
    return (node * 0x9e3779b97f4a7c15ull) ^ (channel << 48) ^ (round << 16) ^ word;
}

// Until *word is at least `least`; false after the timeout.
__device__ inline bool await_at_least(const NicExchange& p, uint64_t word, uint64_t least) {
    uint64_t deadline = now_ns() + p.timeout_ns;
    while (load_acquire_sys(at<const uint64_t>(word)) < least)
        if (now_ns() > deadline) return false;
    return true;
}

// Composes a slot in its node's outbox, and sends it in parts: all but the last by puts, that with the signal.
__device__ inline void send_slot(const NicExchange& p, int node, uint64_t slot, uint64_t round) {
    uint64_t lane = threadIdx.x, num_words = p.slot_bytes / 8;
    auto to = at<uint64_t>(Ibgda::outgoing(p.net, p.slots, node), slot);
    for (uint64_t i = lane; i < num_words; i += kLanes) to[i] = pattern(p.net.node, blockIdx.x, round, i);
    __syncwarp();
    uint64_t part = p.slot_bytes / kParts;
    Ibgda::put(p.net, lane + 1 < kParts, node, p.slots, slot + lane * part, part);
    Ibgda::put_signal(p.net, lane == 0, node, p.slots, slot + (kParts - 1) * part, part, p.flags, blockIdx.x * 8,
                      round + 1);
}

// Blocks of one warp, one for each channel, on every node: each sends num_rounds slots to every other node and takes as
// many, num_slots in flight. `errors` counts what was not as it should be, in mapped host memory.
extern "C" __global__ void deepep_nic_exchange(const __grid_constant__ NicExchange p) {
    uint64_t lane = threadIdx.x, num_words = p.slot_bytes / 8, num_errors = 0;
    for (uint64_t round = 0; round < static_cast<uint64_t>(p.num_rounds); ++round) {
        uint64_t slot = (blockIdx.x * p.num_slots + round % p.num_slots) * p.slot_bytes;
        for (int node = 0; node < p.net.num_nodes; ++node) {
            if (node == p.net.node) continue;
            uint64_t acks = incoming(p.net, p.acks, node) + blockIdx.x * 8;
            uint64_t needed = round < p.num_slots ? 0 : round - p.num_slots + 1;
            if (!await_at_least(p, acks, needed)) ++num_errors;
            __syncwarp();
            send_slot(p, node, slot, round);
        }
        for (int node = 0; node < p.net.num_nodes; ++node) {
            if (node == p.net.node) continue;
            if (!await_at_least(p, incoming(p.net, p.flags, node) + blockIdx.x * 8, round + 1)) ++num_errors;
            __syncwarp();
            auto from = at<const volatile uint64_t>(incoming(p.net, p.slots, node), slot);
            for (uint64_t i = lane; i < num_words; i += kLanes)
                if (from[i] != pattern(node, blockIdx.x, round, i)) ++num_errors;
            __syncwarp();
            if (lane == 0) Ibgda::signal(p.net, node, p.acks, blockIdx.x * 8, round + 1);
        }
        if (num_errors != 0) break;
    }
    if (lane == 0) Ibgda::quiet(p.net);
    if (num_errors != 0) add_release_sys(at<uint64_t>(p.errors), num_errors);
}

}  // namespace deepep
