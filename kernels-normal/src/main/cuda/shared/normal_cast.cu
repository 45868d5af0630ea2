// Rows for a combine in fp8: cast into the heap, one by one; from the expanded layout, the sum of a row's selections.
// Rows that are fp8 already, which have scales, are copied there in the form in which they travel.
//
// Launched before combine on its stream, by each rank for itself, for all of its rows. The sum of selections runs in
// fp32 in the order of k and is rounded to bf16 before it is cast; a row none of whose selections is local is zero.
// Writes: out (the combine region of this rank's heap, which no peer reads between two calls): codes [hidden], then f32
// scales [hidden / 128]; where selections are summed, out_weights.
// Reads: x and scales, which may start anywhere but not in out.
//
// Launch: any number of blocks, any number of threads that is a multiple of 32; no dynamic shared memory.
#include "copy_unaligned.cuh"
#include "deepep/fp8.cuh"
#include "stage_rows.cuh"

namespace deepep::normal {

constexpr int kLaneVectors = 2;  // of bf16, which a lane casts to one of codes
constexpr int kUnitChannels = 8 * kLaneVectors;
constexpr int kUnitsAhead = 2;
constexpr int kPackAhead = 7;  // vectors; a row of hidden 7168 is 2 rounds

using Unit = Vectors<kLaneVectors>;

// A row that may start anywhere.
struct AnyRow {
    uint64_t from;

    __device__ Unit load(int unit, bool active) const {
        Unit x = {};
#pragma unroll
        for (int i = 0; i < kLaneVectors; ++i)
            if (active) x.v[i] = load_vector(from + (unit * kLaneVectors + i) * 16);
        return x;
    }
};

// The sum of a row's selections. from: of selection k in lane k.
struct SummedRow {
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

// All lanes of the warp. row: where the cast one begins.
__device__ __forceinline__ void cast_unit(const StageParams& p, const Unit& x, uint64_t row, int unit) {
    constexpr int kScaleUnits = kFp8ScaleChannels / kUnitChannels;
    Fp8Lane<kLaneVectors> cast = cast_fp8(x, false);
    if (unit >= p.hidden / kUnitChannels) return;
    at<uint4>(row)[unit] = make_uint4(cast.words[0], cast.words[1], cast.words[2], cast.words[3]);
    if (unit % kScaleUnits == 0) at<float>(row, p.hidden)[unit / kScaleUnits] = cast.scale;
}

template <class Row>
__device__ __forceinline__ void cast_row(const StageParams& p, const Row& row, uint64_t to, int lane) {
    int num_units = p.hidden / kUnitChannels;
    for (int unit = lane; unit - lane < num_units; unit += 32) cast_unit(p, row.load(unit, unit < num_units), to, unit);
}

// A lane's units of its warp's rows, one after the other.
struct UnitWalk {
    int row, unit;
    uint64_t at;  // the unit in x, or the row in out
    uint64_t to_next_unit, to_next_row;

    __device__ void advance(const StageParams& p, int num_warps) {
        at += to_next_unit;
        unit += 32;
        if (unit - threadIdx.x % 32 < p.hidden / kUnitChannels) return;
        unit = threadIdx.x % 32;
        row += num_warps;
        at += to_next_row;
    }
};

// Rows on 16 bytes, where nothing stands between loads: some are under way while a unit is cast, across rows too.
__device__ __forceinline__ void cast_aligned_rows(const StageParams& p, int num_rows, int first, int num_warps,
                                                  int lane) {
    constexpr uint64_t kStepBytes = 32 * sizeof(Unit);
    uint64_t row_bytes = (p.hidden / kUnitChannels + 31) / 32 * kStepBytes;
    UnitWalk from{first, lane, p.x + first * p.x_stride + lane * sizeof(Unit), kStepBytes,
                  num_warps * p.x_stride - row_bytes};
    UnitWalk to{first, lane, p.out + first * p.out_stride, 0, num_warps * p.out_stride};
    Unit x[kUnitsAhead] = {};
    auto load = [&](Unit& next) {
#pragma unroll
        for (int i = 0; i < kLaneVectors; ++i)
            if (from.row < num_rows && from.unit < p.hidden / kUnitChannels)
                next.v[i] = __ldg(at<const uint4>(from.at, i * 16));
        from.advance(p, num_warps);
    };
#pragma unroll
    for (int i = 0; i < kUnitsAhead; ++i) load(x[i]);
    while (to.row < num_rows) {
#pragma unroll
        for (int i = 0; i < kUnitsAhead; ++i) {
            if (to.row >= num_rows) break;
            cast_unit(p, x[i], to.at, to.unit);
            load(x[i]);
            to.advance(p, num_warps);
        }
    }
}

__device__ inline void cast_row(const StageParams& p, int row, int lane) {
    uint64_t from = p.x + static_cast<uint64_t>(row) * p.x_stride;
    uint64_t to = p.out + static_cast<uint64_t>(row) * p.out_stride;
    if (!p.expanded_rows) return cast_row(p, AnyRow{from}, to, lane);
    bool selects = lane < p.topk;
    int selection = selected_row(p, row, lane);
    cast_row(p, SummedRow{p, selection, __ballot_sync(~0u, selection >= 0)}, to, lane);
    if (selects && p.weights)
        at<float>(p.out_weights)[static_cast<size_t>(row) * p.topk + lane] =
            selection >= 0 ? at<const float>(p.weights)[selection] : 0;
}

// A row that is fp8 already. Its codes may begin on any byte.
__device__ inline void pack_row(const StageParams& p, int row, int lane) {
    uint64_t from = p.x + static_cast<uint64_t>(row) * p.x_stride;
    uint64_t to = p.out + static_cast<uint64_t>(row) * p.out_stride;
    auto scales = at<const float>(p.scales) + row * p.scales_row_stride;
    for (int i = lane; i < p.hidden / kFp8ScaleChannels; i += 32)
        at<float>(to, p.hidden)[i] = scales[i * p.scales_group_stride];
    if (from % 16 != 0) return copy_unaligned(at<uint8_t>(to), from, p.hidden, lane);
    int num_vectors = p.hidden / 16;
    for (int first = lane; first < num_vectors; first += 32 * kPackAhead) {
        uint4 v[kPackAhead];
#pragma unroll
        for (int j = 0; j < kPackAhead; ++j)
            if (first + 32 * j < num_vectors) v[j] = __ldg(at<const uint4>(from) + first + 32 * j);
#pragma unroll
        for (int j = 0; j < kPackAhead; ++j)
            if (first + 32 * j < num_vectors) at<uint4>(to)[first + 32 * j] = v[j];
    }
}

extern "C" __global__ void __launch_bounds__(kMaxThreads, 1)
    deepep_normal_cast(const __grid_constant__ StageParams p) {
    await_previous_launch();
    int num_warps = gridDim.x * (blockDim.x / 32), lane = threadIdx.x % 32;
    int num_rows = num_staged_rows(p), warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (p.scales) {
        for (int row = warp; row < num_rows; row += num_warps) pack_row(p, row, lane);
        return;
    }
    if (!p.expanded_rows && (p.x | p.x_stride) % 16 == 0) return cast_aligned_rows(p, num_rows, warp, num_warps, lane);
    for (int row = warp; row < num_rows; row += num_warps) cast_row(p, row, lane);
}

}  // namespace deepep::normal
