// Rows for a combine in fp8: cast into the heap, one by one; from the expanded layout, the sum of a row's selections.
//
// Launched before combine on its stream, by each rank for itself, for all of its rows. The sum of selections runs in
// fp32 in the order of k and is rounded to bf16 before it is cast; a row none of whose selections is local is zero.
// Writes: out (the combine region of this rank's heap, which no peer reads between two calls): codes [hidden], then f32
// scales [hidden / 128]; where selections are summed, out_weights. Reads: x, which may start anywhere but not in out.
//
// Launch: any number of blocks, any number of threads that is a multiple of 32; no dynamic shared memory.
#include "deepep/fp8.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

constexpr int kLaneVectors = 2;  // of bf16, which a lane casts to one of codes

// The lane's vectors of a row, or their sum over the row's selections. from: of selection k in lane k.
__device__ __forceinline__ Vectors<kLaneVectors> load_unit(const StageParams& p, int row, int from,
                                                           uint32_t selections, int unit, bool active) {
    Vectors<kLaneVectors> x = {};
    if (!p.expanded_rows) {
        uint64_t source = p.x + static_cast<uint64_t>(row) * p.x_stride + unit * (16 * kLaneVectors);
#pragma unroll
        for (int i = 0; i < kLaneVectors; ++i)
            if (active) x.v[i] = load_vector(source + i * 16);
        return x;
    }
    float sum[kLaneVectors][8] = {};
    for (uint32_t left = selections; left != 0; left &= left - 1) {
        uint64_t source = p.x + static_cast<uint64_t>(__shfl_sync(~0u, from, __ffs(left) - 1)) * p.x_stride;
#pragma unroll
        for (int i = 0; i < kLaneVectors; ++i)
            if (active) add_vector(sum[i], load_vector(source + (unit * kLaneVectors + i) * 16));
    }
#pragma unroll
    for (int i = 0; i < kLaneVectors; ++i) x.v[i] = round_vector(sum[i]);
    return x;
}

__device__ inline void cast_row(const StageParams& p, int row, int lane) {
    constexpr int kScaleUnits = kFp8ScaleChannels / (8 * kLaneVectors);
    bool selects = p.expanded_rows && lane < p.topk;
    int from = selects ? at<const int32_t>(p.expanded_rows)[static_cast<size_t>(row) * p.topk + lane] : -1;
    uint32_t selections = __ballot_sync(~0u, from >= 0);
    uint64_t to = p.out + static_cast<uint64_t>(row) * p.out_stride;
    int num_units = p.hidden / (8 * kLaneVectors);
#pragma unroll 2
    for (int first = 0; first < num_units; first += 32) {
        int unit = first + lane;
        bool active = unit < num_units;
        Fp8Lane<kLaneVectors> cast = cast_fp8(load_unit(p, row, from, selections, unit, active), false);
        if (!active) continue;
        at<uint4>(to)[unit] = make_uint4(cast.words[0], cast.words[1], cast.words[2], cast.words[3]);
        if (lane % kScaleUnits == 0) at<float>(to, p.hidden)[unit / kScaleUnits] = cast.scale;
    }
    if (selects && p.weights)
        at<float>(p.out_weights)[static_cast<size_t>(row) * p.topk + lane] =
            from >= 0 ? at<const float>(p.weights)[from] : 0;
}

extern "C" __global__ void __launch_bounds__(kMaxThreads, 1)
    deepep_normal_cast(const __grid_constant__ StageParams p) {
    int num_warps = gridDim.x * (blockDim.x / 32), lane = threadIdx.x % 32;
    int num_rows = *at<const int32_t>(p.num_rows), warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    for (int row = warp; row < num_rows; row += num_warps) cast_row(p, row, lane);
}

}  // namespace deepep::normal
