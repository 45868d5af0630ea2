// The layout of a dispatch by itself: tokens per rank, node and expert, and which token goes to which rank.
//
// Writes: out_is_token_in_rank in full; adds to the zeroed counters; leaves the first bad selection (below -1 or past
// num_experts) in out_bad_selection. Selections of -1 count nowhere; a repeated expert counts twice for the expert.
//
// Launch: any number of blocks and threads; dynamic shared memory: (num_experts + num_ranks + num_nodes) * 4.
#include "deepep/block.cuh"
#include "deepep/memory.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// Which of the ranks from `first` on, 32 at most, selections name, as a bit mask. With the first rank of all, counts
// the selections and keeps a bad one.
__device__ inline uint32_t selected_ranks(const LayoutParams& p, int t, uint32_t first, uint32_t num_ranks,
                                          uint32_t* hist) {
    auto row = at<const int64_t>(p.topk_idx) + static_cast<size_t>(t) * p.topk;
    uint32_t experts_per_rank = p.num_experts / (p.num_nodes * p.ranks_per_node), mask = 0;
    for (int k = 0; k < p.topk; ++k) {
        int64_t expert = row[k];
        if (expert == -1) continue;
        if (expert < 0 || expert >= p.num_experts) {
            uint64_t key = ~(static_cast<uint64_t>(t) << kLayoutKeyBits | k);
            atomicMax(at<unsigned long long>(p.out_bad_selection), static_cast<unsigned long long>(key));
            continue;
        }
        uint32_t bit = static_cast<uint32_t>(expert) / experts_per_rank - first;
        if (bit < num_ranks) mask |= 1u << bit;
        if (first == 0) atomicAdd(&hist[expert], 1);
    }
    return mask;
}

extern "C" __global__ void __launch_bounds__(kMaxThreads, 1)
    deepep_normal_layout(const __grid_constant__ LayoutParams p) {
    auto hist = reinterpret_cast<uint32_t*>(dynamic_shared());
    int num_ranks = p.num_nodes * p.ranks_per_node, num_counts = p.num_experts + num_ranks + p.num_nodes;
    uint32_t *per_rank = hist + p.num_experts, *per_node = per_rank + num_ranks;
    for (int i = threadIdx.x; i < num_counts; i += blockDim.x) hist[i] = 0;
    __syncthreads();
    for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < p.num_tokens; t += gridDim.x * blockDim.x)
        for (int node = 0; node < p.num_nodes; ++node) {
            auto in_rank = at<uint8_t>(p.out_is_token_in_rank) + static_cast<size_t>(t) * num_ranks;
            bool crosses = false;
            for (int first = node * p.ranks_per_node, end = first + p.ranks_per_node; first < end; first += 32) {
                int count = min(end - first, 32);
                uint32_t mask = selected_ranks(p, t, first, count, hist);
                for (int i = 0; i < count; ++i) {
                    in_rank[first + i] = mask >> i & 1;
                    if (mask >> i & 1) atomicAdd(&per_rank[first + i], 1);
                }
                crosses |= mask != 0;
            }
            if (crosses) atomicAdd(&per_node[node], 1);
        }
    __syncthreads();
    for (int i = threadIdx.x; i < num_counts; i += blockDim.x) {
        uint64_t to = i < p.num_experts ? p.out_tokens_per_expert + i * sizeof(uint32_t)
                      : i < p.num_experts + num_ranks
                          ? p.out_tokens_per_rank + (i - p.num_experts) * sizeof(uint32_t)
                          : p.out_tokens_per_node + (i - p.num_experts - num_ranks) * sizeof(uint32_t);
        if (hist[i] != 0) atomicAdd(at<uint32_t>(to), hist[i]);
    }
}

}  // namespace deepep::normal
