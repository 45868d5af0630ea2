// What a warp of a combine sends at once: a part of the row of a selection, or of the sum of a token's rows.
//
// A type of rows has: kStageBytes of shared memory that it is given; num_items, of what there is to send
// to lane r's rank; Item, what is known of one before its rows are read, and the token and selection whose slot it
// takes; load, before the call is open; store.
#pragma once

#include <type_traits>

#include "deepep/bf16.cuh"
#include "deepep/bulk_copy.cuh"
#include "call.cuh"
#include "deepep/fp8.cuh"
#include "logfmt.cuh"

namespace deepep::lowlatency {

// How rows travel: a CombineFormat.
enum class Wire { kBf16, kFp8, kLogFmt };

constexpr int kCombineSenders = 512;
constexpr int kSendTeamThreads = kCombineSenders / kSendTeams;
constexpr int kChunkChannels = 256;                     // a warp's vectors
constexpr int kPartChunks = kPartChannels / kChunkChannels;
constexpr int kMostUnderWay = 3;  // chunks of rows to be summed, where they come one by one
constexpr int kHeldForFp8 = 4;  // vectors: a lane's registers are few beside the cast
constexpr int kChunkScales = kChunkChannels / kScaleChannels;
constexpr int kLogPartBytes = kPartChannels / kLogChannels * kLogBlockBytes;
static_assert(kStoreWarps == kSendTeamThreads / 32 - 1);  // a team's last warp flags what they have stored
constexpr int kTeamBarrierBytes = kStoreWarps * kMostUnderWay * static_cast<int>(sizeof(uint64_t));
static_assert(kLogPartBytes % 16 == 0 && kLogPartBytes <= kLogStageBytes && kPartChannels % kChunkChannels == 0);

// The part of a row, of kNumChannels channels, and the owner, that a group of the deal stands for; nearest owners
// behind this rank first.
template <int kNumChannels>
struct Errand {
    int part, owner;

    __device__ Errand(const Group& g, int group) : part(small_div(group, g.num_ranks)) {
        owner = g.rank + 1 + group - part * g.num_ranks;
        if (owner >= g.num_ranks) owner -= g.num_ranks;
    }
    __device__ int first_channel() const { return part * kNumChannels; }
    __device__ int num_channels(const CombineParams& p) const { return min(kNumChannels, p.hidden - first_channel()); }
};

using PartErrand = Errand<kPartChannels>;

// Where a part begins in a row.
template <Wire kWire>
__device__ __forceinline__ uint64_t part_offset(int part) {
    return part * static_cast<uint64_t>(kWire == Wire::kLogFmt ? kLogPartBytes
                                        : kWire == Wire::kFp8  ? kFp8PartBytes
                                                               : kPartChannels * 2);
}

// A warp's part as fp8. vector(c): the lane's 8 channels of chunk c, bf16; zeros beyond the row. kUnroll: chunks whose
// code is written out.
template <int kUnroll, class Vector>
__device__ __forceinline__ void send_fp8(uint64_t to, int num_channels, Vector vector) {
    int lane = threadIdx.x % 32;
    float scale = 0;  // lane i: of channels 128 i, 128 i + 1, ...
#pragma unroll kUnroll
    for (int c = 0; c < kPartChunks; ++c) {
        Fp8Lane<1> codes = cast_fp8(Vectors<1>{vector(c)}, false);
        if (c * kChunkChannels + lane * 8 < num_channels)
            *at<uint2>(to + kFp8ScaleBytes + c * kChunkChannels + lane * 8) = uint2{codes.words[0], codes.words[1]};
        float of_chunk = __shfl_sync(~0u, codes.scale, lane % kChunkScales * (32 / kChunkScales));
        if (lane / kChunkScales == c) scale = of_chunk;
    }
    if (lane < num_channels / kScaleChannels) *at<float>(to + lane * sizeof(float)) = scale;
}

// A warp's blocks of LogFMT out of shared memory.
__device__ __forceinline__ void send_blocks(uint64_t to, int num_channels, const uint8_t* blocks) {
    __syncwarp();
    for (int i = threadIdx.x % 32 * 16; i < num_channels / kLogChannels * kLogBlockBytes; i += 512)
        *at<uint4>(to + i) = *reinterpret_cast<const uint4*>(blocks + i);
    __syncwarp();
}

// What a Selection's origin says.
__device__ __forceinline__ uint32_t token_of(uint32_t origin) { return origin >> kTopkBits; }
__device__ __forceinline__ uint32_t selection_of(uint32_t origin) { return origin & (kMaxTopk - 1); }

// Whether all rows of x begin on 16 bytes, where the copy engine can read them.
__device__ __forceinline__ bool has_aligned_rows(const CombineParams& p) {
    return ((p.x | p.x_expert_stride | p.x_row_stride) & 15) == 0;
}

// The row of x at a Selection's place.
__device__ __forceinline__ uint64_t x_row(const CombineParams& p, uint32_t place) {
    return p.x + (place >> kRowBits) * p.x_expert_stride + (place & ((1 << kRowBits) - 1)) * p.x_row_stride;
}

__device__ __forceinline__ void add_scaled(float& sum, float weight, float value) {
    sum = __fadd_rn(sum, __fmul_rn(weight, value));  // two roundings, as on the host
}

// A part of a row of x, 8 channels per lane and chunk. What is encoded comes through few registers: a chunk is loaded
// while the last one is encoded.
template <Wire kWire>
struct CombinePart {
    static constexpr int kHeld = kWire == Wire::kLogFmt ? 1 : kWire == Wire::kFp8 ? kHeldForFp8 : kPartChunks;
    static constexpr int kStride = kChunkChannels * 2;

    Vectors<kHeld> x;
    uint64_t from, end;

    __device__ void load(uint64_t row, int num_channels) {
        from = row + threadIdx.x % 32 * 16;
        end = row + num_channels * 2;
        x = load_vectors<kHeld, kStride>(from, end);
    }

    __device__ void store(uint64_t to, int num_channels) const {
        int first = threadIdx.x % 32 * 16;
#pragma unroll
        for (int c = 0; c < kHeld; ++c)
            if (first + c * kStride < num_channels * 2) *at<uint4>(to + first + c * kStride) = x.v[c];
    }

    // The lane's vector of a chunk, once and in order; the next ones are under way.
    __device__ uint4 next(int chunk) {
        uint4 now = x.v[chunk % kHeld];
        if (chunk + kHeld < kPartChunks)
            x.v[chunk % kHeld] = load_vectors<1, kStride>(from + (chunk + kHeld) * kStride, end).v[0];
        return now;
    }

    // stage: kLogStageBytes of the warp's own.
    __device__ void encode(uint64_t to, int num_channels, uint8_t* stage) {
        int lane = threadIdx.x % 32;
#pragma unroll 1
        for (int c = 0; c < kPartChunks; ++c) {
            uint4 now = x.v[0];
            from += kStride;
            x = load_vectors<kHeld, kStride>(from, end);
            int block = c * (kChunkChannels / kLogChannels) + lane / kLogLanes;
            encode_log(now, stage + block * kLogBlockBytes, block * kLogChannels < num_channels);
        }
        send_blocks(to, num_channels, stage);
    }
};

// Every selection's row by itself.
template <Wire kWire>
struct SelectionRows {
    using Item = uint2;  // a Selection, if there is one
    static constexpr int kStageBytes = kWire == Wire::kLogFmt ? kLogStageBytes : 0;

    CombinePart<kWire> part;
    uint8_t* stage;

    __device__ explicit SelectionRows(uint8_t* memory) : stage(memory) {}
    __device__ static int num_items(const CombineParams& p, int rank) {
        return at<const Bank>(p.bank)->num_selections[rank];
    }
    __device__ static Item ask(const CombineParams& p, int owner, int item) {
        int capacity = p.max_tokens * p.max_topk;
        return item < capacity ? at<const uint2>(p.selections)[static_cast<int64_t>(owner) * capacity + item] : uint2{};
    }
    __device__ static uint32_t origin(const Item& item) { return item.y; }
    __device__ void load(const CombineParams& p, const PartErrand& errand, const Item& item) {
        part.load(x_row(p, item.x) + errand.first_channel() * 2, errand.num_channels(p));
    }
    __device__ void store(uint64_t to, int num_channels) {
        if constexpr (kWire == Wire::kLogFmt) {
            part.encode(to, num_channels, stage);
        } else if constexpr (kWire == Wire::kFp8) {
            send_fp8<kPartChunks>(to, num_channels, [this](int c) { return part.next(c); });  // they are in registers
        } else {
            part.store(to, num_channels);
        }
    }
    __device__ void drop(int) const {}
};

// The rows of a token here, summed as the dispatch weighted them, in fp32 and in the order of selections, and rounded
// to bf16: they take the slot of the first. The copy engine brings them to the warp's stage: many are under way,
// without registers, and without standing in the way of the block's other loads and stores. All of a part comes at
// once, or, where the stage is too small for so many rows, chunk by chunk. Rows that do not begin on 16 bytes are read
// where they are, and so are those too many for the stage. The barriers of a team's warps lie behind all its stages,
// where packs leave them alone: the memory of an mbarrier is nothing else's until it is invalidated, not even for what
// comes after all barriers of the block.
template <Wire kWire>
struct ReducedRows {
    struct Item {
        uint32_t place;  // of selection k in lane k, or ~0
        float weight;
        uint32_t token;
    };
    static constexpr int kUnroll = 1;  // code that is run once costs more to fetch than to run
    static constexpr int kStride = kChunkChannels * 2;
    static constexpr int kStageBytes = kReduceStageBytes;
    // What rows come to, and behind it where LogFMT is encoded. Room: in chunks.
    static constexpr int kBlocksAt = (kStageBytes - kTeamBarrierBytes) / 16 * 16 - kLogStageBytes;
    static constexpr int kRoom = (kWire == Wire::kLogFmt ? kBlocksAt : kStageBytes - kTeamBarrierBytes) / kStride;
    // That are added up: as many as there are registers for, on sm_100 too.
    static constexpr int kRowsAtOnce = kWire == Wire::kBf16 || (kHasOneNode && kWire == Wire::kFp8) ? 3 : 2;
    static_assert(kLogStageBytes % 16 == 0);

    uint32_t stage;  // in the block's dynamic memory
    uint32_t parities = 0;  // a bit for each barrier
    uint64_t row;  // lane j: of the j-th, where the part begins
    float weight;  // of that row, 0 beyond the last
    int num_rows = 0;
    int under_way;  // loads that are, at most: of all chunks or of one; 0 if nothing comes to the stage
    int slot;       // in the stage, of the next of them

    __device__ explicit ReducedRows(uint8_t* memory) : stage(memory - dynamic_shared()) {
        if (threadIdx.x % 32 == 0) {
#pragma unroll
            for (int i = 0; i < kMostUnderWay; ++i) barrier_init(arrived(i), 1);
            barrier_init_fence();
        }
        __syncwarp();
    }

    __device__ __forceinline__ uint64_t* arrived(int in_slot) const {
        int warp = threadIdx.x % kSendTeamThreads / 32;
        uint8_t* stages_end = dynamic_shared() + stage + (kStoreWarps - warp) * kStageBytes;
        return reinterpret_cast<uint64_t*>(stages_end - kTeamBarrierBytes) + warp * kMostUnderWay + in_slot;
    }

    // Whether all chunks of all rows do.
    __device__ __forceinline__ bool fit() const { return num_rows * kPartChunks <= kRoom; }

    // Chunks that come together.
    __device__ __forceinline__ int at_once() const { return fit() ? kPartChunks : 1; }

    __device__ static int num_items(const CombineParams& p, int rank) { return at<const Bank>(p.bank)->num_rows[rank]; }
    __device__ static Item ask(const CombineParams& p, int owner, int item) {
        int lane = threadIdx.x % 32;
        if (item >= p.max_tokens) return {~0u, 0, 0};
        size_t row = static_cast<size_t>(owner) * p.max_tokens + item;
        uint32_t token = at<const uint32_t>(p.row_tokens)[row];
        if (lane >= p.topk) return {~0u, 0, token};
        uint2 selection = at<const uint2>(p.row_selections)[row * p.max_topk + lane];
        return {selection.x, __uint_as_float(selection.y), token};
    }
    __device__ static uint32_t origin(const Item& item) {
        uint32_t selected = __ballot_sync(~0u, item.place != ~0u);
        return item.token << kTopkBits | (selected != 0 ? __ffs(selected) - 1 : 0);
    }

    __device__ void load(const CombineParams& p, const PartErrand& errand, const Item& item) {
        if (num_rows != 0) leave_stage();
        uint32_t selected = __ballot_sync(~0u, item.place != ~0u);
        uint64_t from = item.place != ~0u ? x_row(p, item.place) + errand.first_channel() * 2 : 0;
        num_rows = __popc(selected);
        under_way = !has_aligned_rows(p) ? 0 : fit() ? 1 : min(kMostUnderWay, small_div(kRoom, num_rows));
        slot = 0;
        weight = 0;
#pragma unroll 1
        for (int j = 0; j < num_rows; ++j, selected &= selected - 1) {
            uint64_t its_row = __shfl_sync(~0u, from, __ffs(selected) - 1);
            float its_weight = __shfl_sync(~0u, item.weight, __ffs(selected) - 1);
            if (threadIdx.x % 32 == j) row = its_row, weight = its_weight;
        }
#pragma unroll 1
        for (int i = 0; i < under_way; ++i) ask_for(i, i, errand.num_channels(p));
    }

    // Before something else comes to it. All lanes.
    __device__ __forceinline__ static void leave_stage() {
        fence_async_proxy_shared();
        __syncwarp();
    }

    __device__ __forceinline__ static bool has(int chunk, int num_channels) {
        return chunk < kPartChunks && chunk * kChunkChannels < num_channels;
    }

    __device__ __forceinline__ uint8_t* staged(int j, int in_slot) const {
        return dynamic_shared() + stage + (in_slot * num_rows + j) * at_once() * kStride;
    }

    // For the rows' chunks from the given one on, if they have it.
    __device__ __forceinline__ void ask_for(int chunk, int in_slot, int num_channels) const {
        if (!has(chunk, num_channels)) return;
        int lane = threadIdx.x % 32, begin = chunk * kStride;
        int bytes = min(at_once() * kStride, num_channels * 2 - begin);
        if (lane == 0) barrier_arrive_expect(arrived(in_slot), num_rows * bytes);
        __syncwarp();
        if (lane < num_rows) bulk_load(staged(lane, in_slot), at<const uint8_t>(row, begin), bytes, arrived(in_slot));
    }

    __device__ __forceinline__ void await_slot(int in_slot) {
        barrier_wait(arrived(in_slot), parities >> in_slot & 1);
        parities ^= 1u << in_slot;
    }

    // The lane's vector of a chunk of the sum, rounded; once and in order. All lanes.
    __device__ __forceinline__ uint4 next(int chunk, int num_channels) {
        if (under_way == 0) return sum_in_place(row, weight, num_rows, chunk * kStride, num_channels * 2);
        if (has(chunk, num_channels) && (!fit() || chunk == 0)) await_slot(slot);
        int offset = chunk * kStride + threadIdx.x % 32 * 16;
        const uint8_t* from = staged(0, slot) + (fit() ? offset : offset - chunk * kStride);
        float sum[8] = {};
#pragma unroll 1
        for (int first = 0; first < num_rows; first += kRowsAtOnce) {
            uint4 v[kRowsAtOnce];
            float factor[kRowsAtOnce];
#pragma unroll
            for (int j = 0; j < kRowsAtOnce; ++j) {
                factor[j] = __shfl_sync(~0u, weight, first + j);
                v[j] = make_uint4(0, 0, 0, 0);
                if (first + j < num_rows && offset < num_channels * 2)
                    v[j] = *reinterpret_cast<const uint4*>(from + (first + j) * at_once() * kStride);
            }
#pragma unroll
            for (int j = 0; j < kRowsAtOnce; ++j)
#pragma unroll
                for (int i = 0; i < 8; ++i) add_scaled(sum[i], factor[j], bf16_at(v[j], i));
        }
        if (!fit()) {
            leave_stage();
            ask_for(chunk + under_way, slot, num_channels);
            slot = slot + 1 == under_way ? 0 : slot + 1;
        }
        return round_vector(sum);
    }

    // The same of rows where they are.
    __device__ __noinline__ static uint4 sum_in_place(uint64_t row, float weight, int num_rows, int begin,
                                                      int num_bytes) {
        int offset = begin + threadIdx.x % 32 * 16;
        float sum[8] = {};
#pragma unroll 1
        for (int j = 0; j < num_rows; ++j) {
            uint64_t from = __shfl_sync(~0u, row, j);
            float factor = __shfl_sync(~0u, weight, j);
            uint4 v = load_vectors<1, kStride>(from + offset, from + num_bytes).v[0];
#pragma unroll
            for (int i = 0; i < 8; ++i) add_scaled(sum[i], factor, bf16_at(v, i));
        }
        return round_vector(sum);
    }

    // In place of store, for an owner that is not to be reached: no copy may outlive the block.
    __device__ void drop(int num_channels) {
#pragma unroll 1
        for (int i = 0; i < under_way; ++i)
            if (has(i, num_channels)) await_slot(i);
    }

    __device__ void store(uint64_t to, int num_channels) {
        int lane = threadIdx.x % 32;
        if constexpr (kWire == Wire::kFp8) {
            send_fp8<kUnroll>(to, num_channels, [&](int c) { return next(c, num_channels); });
        } else if constexpr (kWire == Wire::kLogFmt) {
            uint8_t* blocks = dynamic_shared() + stage + kBlocksAt;
#pragma unroll 1
            for (int c = 0; c < kPartChunks; ++c) {
                int block = c * (kChunkChannels / kLogChannels) + lane / kLogLanes;
                encode_log(next(c, num_channels), blocks + block * kLogBlockBytes, block * kLogChannels < num_channels);
            }
            send_blocks(to, num_channels, blocks);
        } else {
#pragma unroll kUnroll
            for (int c = 0; c < kPartChunks; ++c) {
                uint4 sum = next(c, num_channels);
                if (lane * 16 + c * kStride < num_channels * 2) *at<uint4>(to + lane * 16 + c * kStride) = sum;
            }
        }
    }
};

template <Wire kWire, bool kReduce>
using SentRows = std::conditional_t<kReduce, ReducedRows<kWire>, SelectionRows<kWire>>;

// The rows of a parity, of each source; and where in a source's the row of an item or a selection lies.
__device__ __forceinline__ RankCells rows_of(const CombineParams& p, uint32_t epoch) {
    return {p.row_offset + (epoch & 1) * p.row_parity_stride, p.row_rank_stride};
}

__device__ __forceinline__ uint64_t item_offset(const CombineParams& p, uint32_t item) {
    return static_cast<uint64_t>(item) * p.row_stride;
}

__device__ __forceinline__ uint64_t slot_offset(const CombineParams& p, uint32_t token, uint32_t k) {
    return item_offset(p, token * p.max_topk + k);
}

// The flag of a part of that row: those of one token and part lie side by side, so that their reader looks at few
// lines.
__device__ __forceinline__ uint64_t flag_offset(const CombineParams& p, int source, uint32_t token, uint32_t k,
                                                int part, uint32_t epoch) {
    return p.flag_offset + (epoch & 1) * p.flag_parity_stride + token * p.flag_token_stride +
           part * p.flag_part_stride + (source * p.max_topk + k) * (kFlagWords * sizeof(uint32_t));
}

__device__ __forceinline__ int num_parts(const CombineParams& p) {
    return (p.hidden + kPartChannels - 1) / kPartChannels;
}

}  // namespace deepep::lowlatency
