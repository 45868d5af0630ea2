// Rows for combine into the heap: copied one to one, or, from the expanded layout, summed over a row's selections.
//
// Launched before combine on its stream, by each rank for itself, when x lies where peers cannot read it or is
// expanded. With source_rows, only the rows that other ranks of the node pull are copied: a rank reads its own where
// they are, those of its tokens and of its peers' on other nodes.
// The sum runs in fp32 in the order of k and is rounded once to bf16; a row none of whose selections is local is zero.
// Writes: out (the combine region of this rank's heap, which no peer reads between two calls), out_weights.
//
// Launch: any number of blocks, any number of threads that is a multiple of 32; no dynamic shared memory.
#include "deepep/bf16.cuh"
#include "stage_rows.cuh"

namespace deepep::normal {

constexpr int kStageUnroll = 7;  // a row of hidden 7168 is 4 rounds

__device__ inline void copy_row(const StageParams& p, int row, int lane) {
    uint64_t from = p.x + static_cast<uint64_t>(row) * p.x_stride;
    uint64_t to = p.out + static_cast<uint64_t>(row) * p.out_stride;
    int num_vectors = p.hidden / 8;
    for (int first = lane; first < num_vectors; first += 32 * kStageUnroll) {
        uint4 v[kStageUnroll];
#pragma unroll
        for (int j = 0; j < kStageUnroll; ++j)
            if (first + 32 * j < num_vectors) v[j] = load_vector(from + (first + 32 * j) * 16);
#pragma unroll
        for (int j = 0; j < kStageUnroll; ++j)
            if (first + 32 * j < num_vectors) at<uint4>(to)[first + 32 * j] = v[j];
    }
}

__device__ inline void sum_row(const StageParams& p, int row, int lane) {
    uint64_t to = p.out + static_cast<uint64_t>(row) * p.out_stride;
    int from = selected_row(p, row, lane);
    uint32_t selections = __ballot_sync(~0u, from >= 0);
    int num_vectors = p.hidden / 8;
    for (int c = 0; c < num_vectors; c += 32) {
        float sum[8] = {};
        for (uint32_t left = selections; left != 0; left &= left - 1) {
            uint64_t source = p.x + static_cast<uint64_t>(__shfl_sync(~0u, from, __ffs(left) - 1)) * p.x_stride;
            if (c + lane < num_vectors) add_vector(sum, load_vector(source + (c + lane) * 16));
        }
        if (c + lane < num_vectors) at<uint4>(to)[c + lane] = round_vector(sum);
    }
    if (p.weights && lane < p.topk) {
        float weight = from >= 0 ? at<const float>(p.weights)[from] : 0;
        at<float>(p.out_weights)[static_cast<size_t>(row) * p.topk + lane] = weight;
    }
}

// Rows that other ranks of the node pull; rows of all sources are dealt out in turn.
__device__ inline void copy_for_peers(const StageParams& p, int warp, int num_warps, int lane) {
    auto first_row = at<const int32_t>(p.source_rows);
    int dealt = 0;  // rows before this source's
    for (int s = 0; s < p.num_sources; ++s) {
        if (s % p.num_ranks == p.rank) continue;
        int begin = first_row[s], count = min(first_row[s + 1], p.x_rows) - begin;
        for (int i = (warp + num_warps - dealt % num_warps) % num_warps; i < count; i += num_warps)
            copy_row(p, begin + i, lane);
        dealt += max(count, 0);
    }
}

extern "C" __global__ void __launch_bounds__(kMaxThreads, 1)
    deepep_normal_stage(const __grid_constant__ StageParams p) {
    await_previous_launch();
    int num_warps = gridDim.x * (blockDim.x / 32), lane = threadIdx.x % 32;
    int num_rows = num_staged_rows(p), warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (p.source_rows) {
        copy_for_peers(p, warp, num_warps, lane);
    } else {
        for (int row = warp; row < num_rows; row += num_warps) {
            if (p.expanded_rows)
                sum_row(p, row, lane);
            else
                copy_row(p, row, lane);
        }
    }
    if (p.expanded_rows || !p.weights) return;
    for (size_t i = warp * 32 + lane; i < static_cast<size_t>(num_rows) * p.topk; i += num_warps * 32)
        at<float>(p.out_weights)[i] = at<const float>(p.weights)[i];
}

}  // namespace deepep::normal
