// The summing half of combine: one warp fills slots of shared memory with chunks of rows, in order; the consumer warps
// sum the rows of each chunk in fp32 and hand the rounded sum to a sink.
#pragma once

#include "combine_wire.cuh"
#include "deepep/bf16.cuh"
#include "deepep/bulk_copy.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

constexpr int kRowBatch = 4;

// What the rows of one chunk of a token are, in the first of their slots.
struct SlotInfo {
    int32_t token;  // -1: no more
    int16_t chunk;
    int16_t num_rows;  // in consecutive slots; 0 takes one slot, without data
};
static_assert(sizeof(SlotInfo) == 8);

struct SlotRing {
    uint64_t full[kMaxSlots], empty[kMaxSlots];
    SlotInfo info[kMaxSlots];
};

// The threads of a block past its service warps, `first` threads in all.
struct Consumers {
    uint32_t first;

    __device__ uint32_t idx() const { return threadIdx.x - first; }
    __device__ uint32_t count() const { return blockDim.x - first; }
};

// All threads; the block synchronises before the ring is used.
__device__ inline void init_slots(SlotRing& ring, int num_slots, Consumers consumers) {
    for (int i = threadIdx.x; i < num_slots; i += blockDim.x) {
        barrier_init(&ring.full[i], 1);
        barrier_init(&ring.empty[i], consumers.count());
        barrier_init_fence();
    }
}

// Where sums of a rank's own tokens go: bf16 rows of `out`, the biases added in order before the rounding.
template <class Wire>
struct TokenSink {
    const CombineParams& p;
    static constexpr bool kAddsBias = true;

    __device__ void taken(uint32_t) const {}
    __device__ void begin(const SlotInfo&) const {}
    __device__ void store(const SlotInfo& info, uint32_t unit, const float* sum, bool mine) const {
        constexpr int kPerUnit = Wire::kChannels / 8;
#pragma unroll
        for (int i = 0; i < kPerUnit; ++i)
            if (mine)
                store_vector(p.out + info.token * p.out_stride + (unit * kPerUnit + i) * 16, round_vector(sum + 8 * i));
    }
    __device__ void end(const SlotInfo&) const {}
    __device__ void finish() const {}
};

// The consumer warps: units consumer, consumer + num_consumers, ... of each chunk, kRowBatch rows at a time.
// A sink sees, in each consumer: taken(slot) when the slot has been filled; for each chunk begin(), store() with the
// index of the unit in the row, end(); at last finish(). Where rows have scales, store() is called by all lanes of a
// warp, `mine` by those that have a unit.
template <class Wire, class Sink>
__device__ inline void sum_chunks(const CombineParams& p, SlotRing& ring, const uint8_t* slots, uint32_t num_slots,
                                  Consumers consumers, Sink sink) {
    uint32_t consumer = consumers.idx(), stride = consumers.count(), slot = 0, round = 0;
    constexpr int kUnits = Wire::kUnits, kChannels = Wire::kChannels, kBiases = kChannels / 8;
    int row_units = p.hidden / kChannels, chunk_units = p.chunk_bytes / 16;
    for (;;) {
        barrier_wait(&ring.full[slot], round & 1);
        SlotInfo info = ring.info[slot];
        if (info.token < 0) break;
        uint32_t first_unit = info.chunk * chunk_units;
        uint32_t num_units = min(chunk_units, row_units - first_unit);
        uint4 bias[2][kUnits][kBiases];
        float sum[kUnits][kChannels] = {};
#pragma unroll
        for (int v = 0; v < kUnits; ++v)
#pragma unroll
            for (int b = 0; b < 2; ++b)  // asked for early, added last
#pragma unroll
                for (int i = 0; i < kBiases; ++i)
                    if (Sink::kAddsBias && p.bias[b] && consumer + v * stride < num_units)
                        bias[b][v][i] = load_vector(p.bias[b] + info.token * p.bias_stride[b] +
                                                    ((first_unit + consumer + v * stride) * kBiases + i) * 16);
        int left = info.num_rows;
        do {
            typename Wire::Unit rows[kRowBatch][kUnits];
            uint32_t batch = max(1, min(left, kRowBatch)), first = slot;
#pragma unroll
            for (uint32_t j = 0; j < kRowBatch; ++j) {
                if (j >= batch) continue;
                barrier_wait(&ring.full[slot], round & 1);
                sink.taken(slot);
                auto chunk = slots + slot * Wire::slot_bytes(p);
#pragma unroll
                for (int v = 0; v < kUnits; ++v)
                    if (consumer + v * stride < num_units && left > 0)
                        rows[j][v] = Wire::read(p, chunk, consumer + v * stride);
                if (++slot == num_slots) slot = 0, ++round;
            }
#pragma unroll
            for (int j = 0; j < kRowBatch; ++j)
#pragma unroll
                for (int v = 0; v < kUnits; ++v)
                    if (j < left) Wire::add(sum[v], rows[j][v]);
            fence_async_proxy_shared();  // read by ordinary loads, overwritten by the copy engine
            for (uint32_t j = 0, s = first; j < batch; ++j, s = s + 1 == num_slots ? 0 : s + 1)
                barrier_arrive(&ring.empty[s]);  // release, by each reader for itself; pairs with the filling warp
            left -= kRowBatch;
        } while (left > 0);
        sink.begin(info);
#pragma unroll
        for (int v = 0; v < kUnits; ++v) {
            uint32_t c = consumer + v * stride;
            if (!Wire::kScaled && c >= num_units) continue;
#pragma unroll
            for (int b = 0; b < 2; ++b)
#pragma unroll
                for (int i = 0; i < kBiases; ++i)
                    if (Sink::kAddsBias && p.bias[b]) add_vector(sum[v] + 8 * i, bias[b][v][i]);
            sink.store(info, first_unit + c, sum[v], c < num_units);
        }
        sink.end(info);
    }
    sink.finish();
}

}  // namespace deepep::normal
