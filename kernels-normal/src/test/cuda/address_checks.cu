// Where the kernels look for what Java has laid out: the test compares every address.
#include "../../main/cuda/shared/exchange.cuh"

namespace deepep::normal {

// One thread; touches nothing but `out`, which receives for each holder: headers [parity][source], meta flags and
// done flags [source], and the first byte of each receive region; then the local state.
extern "C" __global__ void deepep_normal_addresses(const __grid_constant__ DispatchParams p, uint64_t* out) {
    const Group& g = p.group;
    auto write = [&](const void* address) { *out++ = reinterpret_cast<uint64_t>(address); };
    for (int holder = 0; holder < g.num_ranks; ++holder) {
        for (uint32_t epoch = 6; epoch < 8; ++epoch)
            for (int source = 0; source < g.num_ranks; ++source) write(header_slot(g, holder, source, epoch));
        for (int source = 0; source < g.num_ranks; ++source) write(meta_flag(g, holder, source));
        for (int source = 0; source < g.num_ranks; ++source) write(done_flag(g, holder, source));
        write(at<uint8_t>(g.heap[holder], p.recv_offset));
        write(at<uint8_t>(g.heap[holder], p.recv_topk_offset));
        write(at<uint8_t>(g.heap[holder], p.recv_weights_offset));
    }
    write(&state_of(g)->block_counts[1][2]);
}

}  // namespace deepep::normal
