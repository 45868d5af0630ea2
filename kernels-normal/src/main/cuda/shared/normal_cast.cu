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

using Unit = Vectors<kLaneVectors>;

// A row that may start anywhere.
struct AnyRow {
    static constexpr int kUnitsAtOnce = 1;
    uint64_t from;

    __device__ Unit load(int unit, bool active) const {
        Unit x = {};
#pragma unroll
        for (int i = 0; i < kLaneVectors; ++i)
            if (active) x.v[i] = load_vector(from + (unit * kLaneVectors + i) * 16);
        return x;
    }
};

// A row on 16 bytes: nothing stands between its loads, so several are under way together.
struct AlignedRow {
    static constexpr int kUnitsAtOnce = 3;
    uint64_t from;

    __device__ Unit load(int unit, bool active) const {
        Unit x = {};
#pragma unroll
        for (int i = 0; i < kLaneVectors; ++i)
            if (active) x.v[i] = __ldg(at<const uint4>(from, (unit * kLaneVectors + i) * 16));
        return x;
    }
};

// The sum of a row's selections. from: of selection k in lane k.
struct SummedRow {
    static constexpr int kUnitsAtOnce = 1;
    const StageParams& p;
    int from;
    uint32_t selections;

    __device__ Unit load(int unit, bool active) const {
        float sum[kLaneVectors][8] = {};
        for (uint32_t left = selections; left != 0; left &= left - 1) {
            uint64_t source = p.x + static_cast<uint64_t>(__shfl_sync(~0u, from, __ffs(left) - 1)) * p.x_stride;
#pragma unroll
            for (int i = 0; i < kLaneVectors; ++i)
                if (active) add_vector(sum[i], load_vector(source + (unit * kLaneVectors + i) * 16));
        }
        Unit x;
#pragma unroll
        for (int i = 0; i < kLaneVectors; ++i) x.v[i] = round_vector(sum[i]);
        return x;
    }
};

template <class Row>
__device__ __forceinline__ void cast_row(const StageParams& p, const Row& row, uint64_t to, int lane) {
    constexpr int kScaleUnits = kFp8ScaleChannels / (8 * kLaneVectors);
    int num_units = p.hidden / (8 * kLaneVectors);
    for (int first = lane; first - lane < num_units; first += 32 * Row::kUnitsAtOnce) {
        Unit x[Row::kUnitsAtOnce];
#pragma unroll
        for (int i = 0; i < Row::kUnitsAtOnce; ++i) x[i] = row.load(first + 32 * i, first + 32 * i < num_units);
#pragma unroll
        for (int i = 0; i < Row::kUnitsAtOnce; ++i) {
            int unit = first + 32 * i;
            Fp8Lane<kLaneVectors> cast = cast_fp8(x[i], false);
            if (unit >= num_units) continue;
            at<uint4>(to)[unit] = make_uint4(cast.words[0], cast.words[1], cast.words[2], cast.words[3]);
            if (lane % kScaleUnits == 0) at<float>(to, p.hidden)[unit / kScaleUnits] = cast.scale;
        }
    }
}

__device__ inline void cast_row(const StageParams& p, int row, int lane) {
    uint64_t from = p.x + static_cast<uint64_t>(row) * p.x_stride;
    uint64_t to = p.out + static_cast<uint64_t>(row) * p.out_stride;
    if (!p.expanded_rows) {
        if (from % 16 == 0)
            cast_row(p, AlignedRow{from}, to, lane);
        else
            cast_row(p, AnyRow{from}, to, lane);
        return;
    }
    bool selects = lane < p.topk;
    int selection = selects ? at<const int32_t>(p.expanded_rows)[static_cast<size_t>(row) * p.topk + lane] : -1;
    cast_row(p, SummedRow{p, selection, __ballot_sync(~0u, selection >= 0)}, to, lane);
    if (selects && p.weights)
        at<float>(p.out_weights)[static_cast<size_t>(row) * p.topk + lane] =
            selection >= 0 ? at<const float>(p.weights)[selection] : 0;
}

extern "C" __global__ void __launch_bounds__(kMaxThreads, 1)
    deepep_normal_cast(const __grid_constant__ StageParams p) {
    int num_warps = gridDim.x * (blockDim.x / 32), lane = threadIdx.x % 32;
    int num_rows = *at<const int32_t>(p.num_rows), warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    for (int row = warp; row < num_rows; row += num_warps) cast_row(p, row, lane);
}

}  // namespace deepep::normal
