// Received rows out of the heap: as they are, or grouped by local expert.
//
// kCopyRows: row i to row i of the outputs. kBuildMap: row i to one row per selection of a local expert, experts one
// after the other, each padded to expert_alignment with rows of zeros; within an expert in the order of (row, k), which
// is the order of (source rank, token, k). kUseMap: the same with the map of an earlier kBuildMap.
// Launched after the dispatch on its stream, by each rank for itself; it adds to the dispatch's status block. Rows past
// out_limit are dropped (the dispatch has reported kTooManyExpanded).
//
// Launch: any number of blocks up to 256, resident together for kBuildMap; kThreads threads. Dynamic shared memory:
// counters u32 [16 warps + 1][num_local_experts], then from stages_offset num_copy_warps * row_stride.
#include "deepep/block.cuh"
#include "deepep/bulk_copy.cuh"
#include "dispatch_layout.cuh"
#include "deepep/wait.cuh"
#include "exchange.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

struct RowRange {
    int begin, end;
};

__device__ __forceinline__ RowRange split(RowRange all, int part, int num_parts) {
    int each = (all.end - all.begin + num_parts - 1) / num_parts;
    int begin = min(all.end, all.begin + part * each);
    return {begin, min(all.end, begin + each)};
}

// First row of each expert, aligned; kBuildMap: the consumer learns them too, and how many rows there are. One warp.
__device__ inline void expert_bases(const ExpandParams& p, uint32_t* bases) {
    int lane = threadIdx.x % 32;
    bool tells = p.mode == kBuildMap && blockIdx.x == 0;
    auto offsets = at<int32_t>(p.out_expert_offsets);
    int32_t sum = 0;
    for (int first = 0; first < p.num_local_experts; first += 32) {
        int e = first + lane;
        int32_t count = e < p.num_local_experts ? at<const int32_t>(p.raw_expert_counts)[e] : 0;
        int32_t aligned = (count + p.expert_alignment - 1) / p.expert_alignment * p.expert_alignment;
        int32_t end = sum + inclusive_sum(aligned);
        if (e < p.num_local_experts) bases[e] = end - aligned;
        if (e < p.num_local_experts && tells) offsets[e] = end - aligned;
        sum = __shfl_sync(~0u, end, 31);
    }
    if (tells && lane == 0) offsets[p.num_local_experts] = sum;
}

// All blocks; false when they do not run together.
__device__ inline bool grid_barrier(const ExpandParams& p) {
    __shared__ bool passed;
    LocalState* state = state_of(p.group);
    uint32_t generation = static_cast<uint32_t>(load_acquire_gpu(&state->barrier)) + 1;
    if (arrive_last(&state->barrier_arrivals) && threadIdx.x == 0)
        store_release_gpu(&state->barrier, generation);  // release; pairs with the acquire below
    if (threadIdx.x == 0) {
        uint64_t seen;
        passed = await_block(&state->barrier, generation, now_ns() + p.group.timeout_ns, seen);
    }
    __syncthreads();
    return passed;
}

// Fills expanded_rows for this block's rows.
__device__ inline bool build_map(const ExpandParams& p, uint32_t* counters, const uint32_t* bases, RowRange rows) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, num_experts = p.num_local_experts;
    uint32_t* mine = counters + warp * num_experts;
    auto topk = at<const int32_t>(p.topk);
    RowRange part = split(rows, warp, kWarps);
    size_t begin = static_cast<size_t>(part.begin) * p.num_topk, end = static_cast<size_t>(part.end) * p.num_topk;
    for (int i = threadIdx.x; i < kWarps * num_experts; i += kThreads) counters[i] = 0;
    __syncthreads();
    for (size_t i = begin + lane; i < end; i += 32)
        if (topk[i] >= 0) atomicAdd(&mine[topk[i]], 1);
    __syncthreads();
    auto hist = at<uint32_t>(p.block_hist);
    for (int e = threadIdx.x; e < num_experts; e += kThreads) {
        uint32_t sum = 0;
        for (int w = 0; w < kWarps; ++w) {
            uint32_t count = counters[w * num_experts + e];
            counters[w * num_experts + e] = sum;
            sum += count;
        }
        hist[static_cast<size_t>(blockIdx.x) * num_experts + e] = sum;
    }
    if (!grid_barrier(p)) return false;
    for (int e = threadIdx.x; e < num_experts; e += kThreads) {
        uint32_t before = bases[e];
        for (int b = 0; b < static_cast<int>(blockIdx.x); ++b) before += hist[static_cast<size_t>(b) * num_experts + e];
        for (int w = 0; w < kWarps; ++w) counters[w * num_experts + e] += before;
    }
    __syncthreads();
    for (size_t first = begin; first < end; first += 32) {
        size_t i = first + lane;
        int expert = i < end ? topk[i] : -1;
        uint32_t alike = __match_any_sync(~0u, expert);
        uint32_t order = __popc(alike & ((1u << lane) - 1));
        uint32_t row = expert >= 0 ? mine[expert] + order : 0;
        __syncwarp();
        if (expert >= 0 && order == 0) mine[expert] += __popc(alike);
        __syncwarp();
        bool fits = expert >= 0 && row < static_cast<uint32_t>(p.out_limit);
        if (i < end) at<int32_t>(p.expanded_rows)[i] = fits ? static_cast<int32_t>(row) : -1;
    }
    __syncthreads();
    return true;
}

// One row of the outputs from shared memory (from == nullptr: zeros), by one warp. With bulk_x the copy engine still
// reads `from` afterwards.
__device__ inline void write_row(const ExpandParams& p, const uint8_t* from, int row, bool bulk_x) {
    int lane = threadIdx.x % 32;
    uint64_t to = p.out_x + static_cast<uint64_t>(row) * p.out_x_stride;
    if (from && bulk_x) {
        if (lane == 0) bulk_store(at<uint8_t>(to), from, p.x_bytes);
    } else if (((to | p.x_bytes) & 15) == 0) {
        for (int i = lane; i < p.x_bytes / 16; i += 32)
            at<uint4>(to)[i] = from ? reinterpret_cast<const uint4*>(from)[i] : make_uint4(0, 0, 0, 0);
    } else {
        for (int i = lane; i < p.x_bytes / 2; i += 32)
            at<uint16_t>(to)[i] = from ? reinterpret_cast<const uint16_t*>(from)[i] : 0;
    }
    if (!p.out_scales) return;
    float* scales = at<float>(p.out_scales) + static_cast<size_t>(row) * p.out_scales_token_stride;
    for (int i = lane; i < p.num_scales; i += 32)
        scales[i * p.out_scales_group_stride] = from ? reinterpret_cast<const float*>(from + p.scales_offset)[i] : 0.0f;
}

__device__ inline void copy_rows(const ExpandParams& p, uint8_t* stage, uint64_t* barrier, RowRange rows, int warp) {
    int lane = threadIdx.x % 32;
    bool bulk_x = ((p.out_x | p.out_x_stride | p.x_bytes) & 15) == 0;
    uint32_t phase = 0;
    for (int i = rows.begin + warp; i < rows.end; i += p.num_copy_warps, phase ^= 1) {
        bulk_wait_read<0>();  // lane 0 alone stores
        __syncwarp();
        if (lane == 0) {
            barrier_arrive_expect(barrier, p.row_stride);
            bulk_load(stage, at<const uint8_t>(p.rows, static_cast<uint64_t>(i) * p.row_stride), p.row_stride, barrier);
        }
        int to = -1;
        if (p.mode == kCopyRows) {
            if (lane == 0 && i < p.out_limit) to = i;
        } else if (lane < p.num_topk) {
            to = at<const int32_t>(p.expanded_rows)[static_cast<size_t>(i) * p.num_topk + lane];
            if (to >= p.out_limit) to = -1;
        }
        if (to >= 0 && p.out_weights && p.mode != kCopyRows)
            at<float>(p.out_weights)[to] = at<const float>(p.weights)[static_cast<size_t>(i) * p.num_topk + lane];
        barrier_wait(barrier, phase);
        for (uint32_t left = __ballot_sync(~0u, to >= 0); left != 0; left &= left - 1)
            write_row(p, stage, __shfl_sync(~0u, to, __ffs(left) - 1), bulk_x);
        bulk_commit();
        fence_async_proxy_shared();  // scales and unaligned rows were read by ordinary loads
        __syncwarp();
    }
    bulk_wait_written();
}

__device__ inline void zero_padding(const ExpandParams& p, const uint32_t* bases) {
    int warp = blockIdx.x * kWarps + threadIdx.x / 32, num_warps = gridDim.x * kWarps;
    for (int i = warp; i < p.num_local_experts * p.expert_alignment; i += num_warps) {
        int e = i / p.expert_alignment, count = at<const int32_t>(p.raw_expert_counts)[e];
        int padding = (p.expert_alignment - count % p.expert_alignment) % p.expert_alignment;
        int row = bases[e] + count + i % p.expert_alignment;
        if (i % p.expert_alignment >= padding || row >= p.out_limit) continue;
        write_row(p, nullptr, row, false);
        if (p.out_weights && threadIdx.x % 32 == 0) at<float>(p.out_weights)[row] = 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1) deepep_normal_expand(const __grid_constant__ ExpandParams p) {
    await_previous_launch();
    uint8_t* dynamic = dynamic_shared();
    __shared__ uint64_t barriers[kWarps];
    int warp = threadIdx.x / 32;
    auto counters = reinterpret_cast<uint32_t*>(dynamic);
    uint32_t* bases = counters + kWarps * p.num_local_experts;
    if (threadIdx.x == 0) {
        for (int i = 0; i < kWarps; ++i) barrier_init(&barriers[i], 1);
        barrier_init_fence();
    }
    if (p.mode != kCopyRows && warp == 0) expert_bases(p, bases);
    __syncthreads();
    RowRange rows = split({0, *at<const int32_t>(p.num_rows)}, blockIdx.x, gridDim.x);
    bool ok = p.mode != kBuildMap || build_map(p, counters, bases, rows);
    uint8_t* stage = dynamic + p.stages_offset + static_cast<size_t>(warp) * p.row_stride;
    if (ok && warp < p.num_copy_warps) copy_rows(p, stage, &barriers[warp], rows, warp);
    if (ok && p.mode != kCopyRows) zero_padding(p, bases);
    if (!ok && threadIdx.x == 0) {
        Fault fault;
        fault.code = kGridNotResident;
        fault.phase = kPhaseGrid;
        fault.rank = fault.peer = p.group.rank;
        record_fault(p.group, state_of(p.group)->epoch, fault);
    }
}

}  // namespace deepep::normal
