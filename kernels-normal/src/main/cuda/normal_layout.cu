// The layout of a dispatch by itself: tokens per rank and per expert, and which token goes to which rank.
//
// Writes: out_is_token_in_rank in full; adds to the zeroed counters; leaves the first bad selection (below -1 or past
// num_experts) in out_bad_selection. Selections of -1 count nowhere; a repeated expert counts twice for the expert.
//
// Launch: any number of blocks and threads; dynamic shared memory: num_experts * 4.
#include "deepep/memory.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(1024, 1) deepep_normal_layout(const __grid_constant__ LayoutParams p) {
    extern __shared__ uint32_t hist[];
    __shared__ uint32_t tokens_per_rank[kMaxRanks];
    for (int e = threadIdx.x; e < p.num_experts; e += blockDim.x) hist[e] = 0;
    if (threadIdx.x < kMaxRanks) tokens_per_rank[threadIdx.x] = 0;
    __syncthreads();
    uint32_t experts_per_rank = p.num_experts / p.num_ranks;
    for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < p.num_tokens; t += gridDim.x * blockDim.x) {
        auto row = at<const int64_t>(p.topk_idx) + static_cast<size_t>(t) * p.topk;
        uint32_t mask = 0;
        for (int k = 0; k < p.topk; ++k) {
            int64_t expert = row[k];
            if (expert == -1) continue;
            if (expert < 0 || expert >= p.num_experts) {
                uint64_t key = ~(static_cast<uint64_t>(t) << 8 | k);
                atomicMax(at<unsigned long long>(p.out_bad_selection), static_cast<unsigned long long>(key));
                continue;
            }
            mask |= 1u << (static_cast<uint32_t>(expert) / experts_per_rank);
            atomicAdd(&hist[expert], 1);
        }
        for (int d = 0; d < p.num_ranks; ++d) {
            at<uint8_t>(p.out_is_token_in_rank)[static_cast<size_t>(t) * p.num_ranks + d] = mask >> d & 1;
            if (mask >> d & 1) atomicAdd(&tokens_per_rank[d], 1);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < p.num_experts; e += blockDim.x)
        if (hist[e] != 0) atomicAdd(at<uint32_t>(p.out_tokens_per_expert) + e, hist[e]);
    if (threadIdx.x < p.num_ranks)
        atomicAdd(at<uint32_t>(p.out_tokens_per_rank) + threadIdx.x, tokens_per_rank[threadIdx.x]);
}

}  // namespace deepep::normal
