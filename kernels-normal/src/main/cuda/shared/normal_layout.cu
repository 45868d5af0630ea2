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

// The ranks of `node` that selections name, as a bit mask. For the first node, counts them and keeps a bad one.
__device__ inline uint32_t ranks_of_node(const LayoutParams& p, int t, uint32_t node, uint32_t* hist) {
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
        uint32_t rank = static_cast<uint32_t>(expert) / experts_per_rank;
        if (rank / p.ranks_per_node == node) mask |= 1u << rank % p.ranks_per_node;
        if (node == 0) atomicAdd(&hist[expert], 1);
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
            uint32_t mask = ranks_of_node(p, t, node, hist);
            auto in_rank = at<uint8_t>(p.out_is_token_in_rank) + static_cast<size_t>(t) * num_ranks;
            for (int i = 0, rank = node * p.ranks_per_node; i < p.ranks_per_node; ++i, ++rank) {
                in_rank[rank] = mask >> i & 1;
                if (mask >> i & 1) atomicAdd(&per_rank[rank], 1);
            }
            if (mask != 0) atomicAdd(&per_node[node], 1);
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
