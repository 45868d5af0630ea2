// How rows of a combine travel, as the warps that load, sum and send them see it.
//
// A wire has: kUnits that a consumer sums of a chunk, kChannels of a unit, whose elements are 16 bytes; load and store
// of a chunk by the copy engine; Unit, read and add. chunk_bytes of CombineParams are those of a chunk's elements.
#pragma once

#include "deepep/bf16.cuh"
#include "deepep/bulk_copy.cuh"
#include "deepep/fp8.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// Rows as they are.
struct Bf16Wire {
    static constexpr bool kScaled = false;
    static constexpr int kUnits = kVectors, kChannels = 8;
    using Unit = uint4;

    __device__ static uint32_t chunk_size(const CombineParams& p, int chunk) {
        return min(p.hidden * 2 - chunk * p.chunk_bytes, p.chunk_bytes);
    }
    // Bytes that a load brings.
    __device__ static uint32_t num_bytes(const CombineParams& p, int chunk) { return chunk_size(p, chunk); }
    // from: where the chunk's elements begin. bytes: num_bytes.
    __device__ static void load(const CombineParams&, uint8_t* slot, const uint8_t* from, int, uint32_t bytes,
                                uint64_t* full) {
        bulk_load(slot, from, bytes, full);
    }
    __device__ static void store(const CombineParams& p, uint64_t row, const uint8_t* stage, int chunk) {
        bulk_store(at<uint8_t>(row, chunk * p.chunk_bytes), stage, chunk_size(p, chunk));
    }
    __device__ static Unit read(const CombineParams&, const uint8_t* slot, uint32_t unit) {
        return reinterpret_cast<const uint4*>(slot)[unit];
    }
    __device__ static void add(float* sum, const Unit& v) { add_vector(sum, v); }
    // Puts a consumer's rounded sum into a stage. All lanes of the warp for which `mine` is set.
    __device__ static void put(const CombineParams&, uint8_t* stage, uint32_t unit, const float* sum, bool) {
        reinterpret_cast<uint4*>(stage)[unit] = round_vector(sum);
    }
};

// Rows cast to fp8 with a scale per 128 channels, behind all codes of a row; in a slot behind those of the chunk. A row
// that is one chunk is one copy, its padding included: NVLink moves whole lines faster than a short end or two copies.
struct Fp8Wire {
    static constexpr bool kScaled = true;
    static constexpr int kUnits = 1, kChannels = 16;
    static constexpr int kScaleUnits = kFp8ScaleChannels / kChannels;
    static constexpr int kCodesPerScaleByte = kFp8ScaleChannels / sizeof(float);

    struct Unit {
        uint4 codes;
        float scale;
    };

    __device__ static uint32_t chunk_size(const CombineParams& p, int chunk) {
        return min(p.hidden - chunk * p.chunk_bytes, p.chunk_bytes);
    }
    // Rounded up to what the copy engine moves; a row is padded.
    __device__ static uint32_t scale_bytes(const CombineParams& p, int chunk) {
        return (chunk_size(p, chunk) / kCodesPerScaleByte + 15) / 16 * 16;
    }
    __device__ static uint32_t num_bytes(const CombineParams& p, int chunk) {
        return p.num_chunks == 1 ? p.row_bytes : chunk_size(p, chunk) + scale_bytes(p, chunk);
    }
    // In a row, from where the chunk's codes begin.
    __device__ static int32_t to_scales(const CombineParams& p, int chunk) {
        return p.hidden - chunk * (p.chunk_bytes - p.chunk_bytes / kCodesPerScaleByte);
    }
    // In a slot.
    __device__ static uint32_t scales_at(const CombineParams& p) { return min(p.hidden, p.chunk_bytes); }
    __device__ static void load(const CombineParams& p, uint8_t* slot, const uint8_t* from, int chunk, uint32_t bytes,
                                uint64_t* full) {
        if (p.num_chunks == 1) {
            bulk_load(slot, from, bytes, full);
        } else {
            bulk_load(slot, from, chunk_size(p, chunk), full);
            bulk_load(slot + scales_at(p), from + to_scales(p, chunk), scale_bytes(p, chunk), full);
        }
    }
    __device__ static void store(const CombineParams& p, uint64_t row, const uint8_t* stage, int chunk) {
        uint8_t* to = at<uint8_t>(row, chunk * p.chunk_bytes);
        if (p.num_chunks == 1) {
            bulk_store(to, stage, p.row_bytes);
        } else {
            bulk_store(to, stage, chunk_size(p, chunk));
            bulk_store(to + to_scales(p, chunk), stage + scales_at(p), scale_bytes(p, chunk));
        }
    }
    __device__ static Unit read(const CombineParams& p, const uint8_t* slot, uint32_t unit) {
        auto scales = reinterpret_cast<const float*>(slot + scales_at(p));
        return {reinterpret_cast<const uint4*>(slot)[unit], scales[unit / kScaleUnits]};
    }
    __device__ static void add(float* sum, const Unit& v) {
        const uint32_t words[4] = {v.codes.x, v.codes.y, v.codes.z, v.codes.w};
#pragma unroll
        for (int w = 0; w < 4; ++w) add_scaled_fp8(sum + 4 * w, words[w], v.scale);
    }
    // All lanes of the warp: those that share a scale are beside each other.
    __device__ static void put(const CombineParams& p, uint8_t* stage, uint32_t unit, const float* sum, bool mine) {
        Fp8Lane<2> lane = cast_fp8(Vectors<2>{round_vector(sum), round_vector(sum + 8)}, false);
        if (!mine) return;
        reinterpret_cast<uint4*>(stage)[unit] =
            make_uint4(lane.words[0], lane.words[1], lane.words[2], lane.words[3]);
        if (unit % kScaleUnits == 0)
            reinterpret_cast<float*>(stage + scales_at(p))[unit / kScaleUnits] = lane.scale;
    }
};

}  // namespace deepep::normal
