// What a warp of a combine sends at once: a part of the row of a selection, or of the sum of a token's rows.
//
// A type of rows has: kStageBytes of shared memory that it is given; num_items, of what there is to send to lane r's
// rank; Item, what is known of one before its rows are read, and the token and selection whose slot it takes; load,
// before the call is open; store.
#pragma once

#include <type_traits>

#include "deepep/bf16.cuh"
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
constexpr int kHeldForFp8 = 4;  // vectors: a lane's registers are few beside the cast
constexpr int kChunkScales = kChunkChannels / kScaleChannels;
constexpr int kLogPartBytes = kPartChannels / kLogChannels * kLogBlockBytes;
static_assert(kStoreWarps == kSendTeamThreads / 32 - 1);  // a team's last warp flags what they have stored
static_assert(kLogPartBytes % 16 == 0 && kLogPartBytes <= kLogStageBytes && kPartChannels % kChunkChannels == 0);

// The part of kChunks chunks, and the owner, that a group of the deal stands for; nearest owners behind this rank
// first.
template <int kChunks>
struct Errand {
    static constexpr int kChannels = kChunks * kChunkChannels;
    int part, owner;

    __device__ Errand(const Group& g, int group) : part(small_div(group, g.num_ranks)) {
        owner = g.rank + 1 + group - part * g.num_ranks;
        if (owner >= g.num_ranks) owner -= g.num_ranks;
    }
    __device__ int first_channel() const { return part * kChannels; }
    __device__ int num_channels(const CombineParams& p) const { return min(kChannels, p.hidden - first_channel()); }
};

// Where a part begins in a row.
template <Wire kWire>
__device__ __forceinline__ uint64_t part_offset(int part) {
    return part * static_cast<uint64_t>(kWire == Wire::kLogFmt ? kLogPartBytes
                                        : kWire == Wire::kFp8  ? kFp8PartBytes
                                                               : kPartChannels * 2);
}

// A warp's part as fp8. vector(c): the lane's 8 channels of chunk c, bf16; zeros beyond the row.
template <int kChunks, class Vector>
__device__ __forceinline__ void send_fp8(uint64_t to, int num_channels, Vector vector) {
    int lane = threadIdx.x % 32;
    float scale = 0;  // lane i: of channels 128 i, 128 i + 1, ...
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
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

// The row of x at a Selection's place.
__device__ __forceinline__ uint64_t x_row(const CombineParams& p, uint32_t place) {
    return p.x + (place >> kRowBits) * p.x_expert_stride + (place & ((1 << kRowBits) - 1)) * p.x_row_stride;
}

__device__ __forceinline__ void add_scaled(float& sum, float weight, float value) {
    sum = __fadd_rn(sum, __fmul_rn(weight, value));  // two roundings, as on the host
}

// A part of a row of x, 8 channels per lane and chunk. What is encoded comes through few registers: a chunk is loaded
// while the last one is encoded.
template <Wire kWire, int kChunks>
struct CombinePart {
    static constexpr int kHeld = kWire == Wire::kLogFmt ? 1 : kWire == Wire::kFp8 ? kHeldForFp8 : kChunks;
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
        if (chunk + kHeld < kChunks)
            x.v[chunk % kHeld] = load_vectors<1, kStride>(from + (chunk + kHeld) * kStride, end).v[0];
        return now;
    }

    // stage: kLogStageBytes of the warp's own.
    __device__ void encode(uint64_t to, int num_channels, uint8_t* stage) {
        int lane = threadIdx.x % 32;
#pragma unroll 1
        for (int c = 0; c < kChunks; ++c) {
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
template <Wire kWire, int kNumChunks>
struct SelectionRows {
    using Item = uint2;  // a Selection, if there is one
    static constexpr int kChunks = kNumChunks;
    static constexpr int kStageBytes = kWire == Wire::kLogFmt ? kLogStageBytes : 0;

    CombinePart<kWire, kChunks> part;

    __device__ static int num_items(const CombineParams& p, int rank) {
        return at<const Bank>(p.bank)->num_selections[rank];
    }
    __device__ static Item ask(const CombineParams& p, int owner, int item) {
        int capacity = p.max_tokens * p.max_topk;
        return item < capacity ? at<const uint2>(p.selections)[static_cast<int64_t>(owner) * capacity + item] : uint2{};
    }
    __device__ static uint32_t origin(const Item& item) { return item.y; }
    __device__ void load(const CombineParams& p, const Errand<kChunks>& errand, const Item& item, uint8_t*) {
        part.load(x_row(p, item.x) + errand.first_channel() * 2, errand.num_channels(p));
    }
    __device__ void store(uint64_t to, int num_channels, uint8_t* stage) {
        if constexpr (kWire == Wire::kLogFmt) {
            part.encode(to, num_channels, stage);
        } else if constexpr (kWire == Wire::kFp8) {
            send_fp8<kChunks>(to, num_channels, [this](int c) { return part.next(c); });
        } else {
            part.store(to, num_channels);
        }
    }
    __device__ uint4 vector(int chunk, const uint8_t*) const { return part.x.v[chunk]; }
};

// The rows of a token here, summed as the dispatch weighted them, in fp32 and in the order of selections, and rounded
// to bf16: they take the slot of the first. Sums wait in the warp's stage, each vector for the lane that made it.
template <Wire kWire, int kNumChunks>
struct ReducedRows {
    struct Item {
        uint32_t place;  // of selection k in lane k, or ~0
        float weight;
        uint32_t token;
    };
    static constexpr int kChunks = kNumChunks;
    static constexpr int kStride = kChunkChannels * 2;
    static constexpr int kStageBytes = kChunks * kStride;
    static_assert(kStageBytes <= kReduceStageBytes);

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

    __device__ void load(const CombineParams& p, const Errand<kChunks>& errand, const Item& item, uint8_t* stage) {
        uint32_t selected = __ballot_sync(~0u, item.place != ~0u);
        uint64_t row = item.place != ~0u ? x_row(p, item.place) + errand.first_channel() * 2 : 0;
        int num_bytes = errand.num_channels(p) * 2;
        bool aligned = ((p.x | p.x_expert_stride | p.x_row_stride) & 15) == 0;
        int num_rows = __popc(selected);
        if (num_rows > 1) fetch_ahead(row, selected, num_bytes);
        // As many loads are under way whatever the number of rows, if there are that many chunks.
        if (!aligned) {
            sum<1, 1, false>(row, item.weight, selected, num_bytes, stage);
        } else if (num_rows <= 1) {
            sum<1, kChunks, true>(row, item.weight, selected, num_bytes, stage);
        } else if (num_rows <= 2) {
            sum<2, kChunks < 4 ? kChunks : 4, true>(row, item.weight, selected, num_bytes, stage);
        } else if (num_rows <= 4 && kChunks >= 4) {
            sum<4, 2, true>(row, item.weight, selected, num_bytes, stage);
        } else {
            sum<4, 1, true>(row, item.weight, selected, num_bytes, stage);
        }
    }

    // The first vectors are asked for at once, but the others only in their turn: they come to the level 2 cache
    // meanwhile.
    __device__ __forceinline__ static void fetch_ahead(uint64_t row, uint32_t selected, int num_bytes) {
        constexpr int kLineVectors = 8;
        int first = threadIdx.x % 32 * 16;
#pragma unroll 1
        for (uint32_t left = selected; left != 0; left &= left - 1) {
            uint64_t begin = __shfl_sync(~0u, row, __ffs(left) - 1);
#pragma unroll
            for (int c = 0; c < kChunks; ++c)
                if (threadIdx.x % kLineVectors == 0 && first + c * kStride < num_bytes)
                    prefetch_l2(at<const uint4>(begin + first + c * kStride));
        }
    }

    // kRows rows at a time, kAtOnce chunks of each; lane k has the row of selection k. kAligned: rows begin on 16
    // bytes. Where several chunks are summed at once, there are at most kRows rows.
    template <int kRows, int kAtOnce, bool kAligned>
    __device__ __forceinline__ static void sum(uint64_t row, float weight, uint32_t selected, int num_bytes,
                                               uint8_t* stage) {
        int lane = threadIdx.x % 32;
#pragma unroll 1
        for (int first = 0; first < kChunks; first += kAtOnce) {
            float sums[kAtOnce][8] = {};
            uint32_t left = selected;
            do {
                Vectors<kAtOnce> x[kRows];
                float factor[kRows];
#pragma unroll
                for (int j = 0; j < kRows; ++j) {
                    int k = left != 0 ? __ffs(left) - 1 : 0;
                    uint64_t begin = __shfl_sync(~0u, row, k), end = left != 0 ? begin + num_bytes : 0;
                    float mine = __shfl_sync(~0u, weight, k);
                    factor[j] = left != 0 ? mine : 0;
                    uint64_t from = begin + first * kStride + lane * 16;
                    x[j] = kAligned ? load_aligned<kAtOnce, kStride>(from, end)
                                    : load_vectors<kAtOnce, kStride>(from, end);
                    left &= left - 1;
                }
#pragma unroll
                for (int c = 0; c < kAtOnce; ++c)
#pragma unroll
                    for (int j = 0; j < kRows; ++j)
#pragma unroll
                        for (int i = 0; i < 8; ++i) add_scaled(sums[c][i], factor[j], bf16_at(x[j].v[c], i));
            } while (kAtOnce == 1 && left != 0);
#pragma unroll
            for (int c = 0; c < kAtOnce; ++c)
                if (first + c < kChunks) *staged(stage, first + c) = round_vector(sums[c]);
        }
    }

    __device__ static uint4* staged(uint8_t* stage, int chunk) {
        return reinterpret_cast<uint4*>(stage + chunk * kStride) + threadIdx.x % 32;
    }

    __device__ uint4 vector(int chunk, uint8_t* stage) const { return *staged(stage, chunk); }

    __device__ void store(uint64_t to, int num_channels, uint8_t* stage) {
        int lane = threadIdx.x % 32;
        if constexpr (kWire == Wire::kFp8) {
            send_fp8<kChunks>(to, num_channels, [=](int c) { return *staged(stage, c); });
        } else if constexpr (kWire == Wire::kLogFmt) {
            // Blocks take the place of sums that have been read: they are shorter.
#pragma unroll 1
            for (int c = 0; c < kChunks; ++c) {
                uint4 now = *staged(stage, c);
                __syncwarp();
                int block = c * (kChunkChannels / kLogChannels) + lane / kLogLanes;
                encode_log(now, stage + block * kLogBlockBytes, block * kLogChannels < num_channels);
            }
            send_blocks(to, num_channels, stage);
        } else {
#pragma unroll
            for (int c = 0; c < kChunks; ++c)
                if (lane * 16 + c * kStride < num_channels * 2)
                    *at<uint4>(to + lane * 16 + c * kStride) = *staged(stage, c);
        }
    }
};

template <Wire kWire, bool kReduce, int kChunks>
using SentRows = std::conditional_t<kReduce, ReducedRows<kWire, kChunks>, SelectionRows<kWire, kChunks>>;

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
