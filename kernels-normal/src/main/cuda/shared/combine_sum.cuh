// The summing half of combine: one warp fills slots of shared memory with chunks of rows, in order; the consumer warps
// sum the rows of each chunk in fp32 and hand the rounded sum to a sink.
#pragma once

#include "combine_wire.cuh"
#include "deepep/bf16.cuh"
#include "deepep/bulk_copy.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// Rows that a consumer reads together: as many as it has registers for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int kRowBatch = 3;
#else
constexpr int kRowBatch = 4;
#endif

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
class ChunkSummer {
  public:
    __device__ ChunkSummer(const CombineParams& params, SlotRing& slot_ring, const uint8_t* ring_slots, uint32_t number,
                           Consumers consumers, Sink& to)
        : p(params), ring(slot_ring), slots(ring_slots), num_slots(number), consumer(consumers.idx()),
          stride(consumers.count()), sink(to) {}

    __device__ void run() {
        if (Sink::kAddsBias && (p.bias[0] || p.bias[1])) {
            run<Sink::kAddsBias>();
        } else {
            run<false>();
        }
        sink.finish();
    }

  private:
    static constexpr int kUnits = Wire::kUnits, kChannels = Wire::kChannels, kBiases = kChannels / 8;
    static constexpr int kShortRows = 2;
    const CombineParams& p;
    SlotRing& ring;
    const uint8_t* slots;
    const uint32_t num_slots, consumer, stride;
    Sink& sink;
    uint32_t slot = 0, round = 0;  // at hand

    struct Sum {
        float of[kUnits][kChannels];
    };

    template <bool kAddsBias>
    __device__ void run() {
        for (;;) {
            barrier_wait(&ring.full[slot], round & 1);
            SlotInfo info = ring.info[slot], next;
            if (info.token < 0) return;
            if (!kAddsBias && is_short(info) && find_next(info, next)) {
                sum_two(info, next);
            } else {
                sum_one<kAddsBias>(info);
            }
        }
    }

    __device__ static bool is_short(const SlotInfo& info) { return info.num_rows > 0 && info.num_rows <= kShortRows; }
    __device__ uint32_t first_unit(const SlotInfo& info) const { return info.chunk * (p.chunk_bytes / 16); }
    __device__ uint32_t num_units(const SlotInfo& info) const {
        return min(p.chunk_bytes / 16, p.hidden / kChannels - static_cast<int>(first_unit(info)));
    }
    __device__ bool has_unit(const SlotInfo& info, int v) const { return consumer + v * stride < num_units(info); }

    // The chunk behind one of few rows, if it is here and has few rows too. Warps may find different things.
    __device__ bool find_next(const SlotInfo& info, SlotInfo& next) const {
        uint32_t first = slot + info.num_rows, in_round = round;
        if (first >= num_slots) first -= num_slots, ++in_round;
        if (!__all_sync(~0u, barrier_test(&ring.full[first], in_round & 1))) return false;
        next = ring.info[first];
        return next.token >= 0 && is_short(next);
    }

    // This consumer's units of the row in the slot at hand, which has been filled.
    __device__ void read(const SlotInfo& info, typename Wire::Unit (&row)[kUnits]) {
        sink.taken(slot);
        auto chunk = slots + slot * p.slot_bytes;
#pragma unroll
        for (int v = 0; v < kUnits; ++v)
            if (has_unit(info, v) && info.num_rows > 0) row[v] = Wire::read(p, chunk, consumer + v * stride);
        if (++slot == num_slots) slot = 0, ++round;
    }

    __device__ static void add(Sum& sum, const typename Wire::Unit (&row)[kUnits]) {
#pragma unroll
        for (int v = 0; v < kUnits; ++v) Wire::add(sum.of[v], row[v]);
    }

    __device__ void leave(uint32_t first, uint32_t count) {
        fence_async_proxy_shared();  // read by ordinary loads, overwritten by the copy engine
        for (uint32_t j = 0, s = first; j < count; ++j, s = s + 1 == num_slots ? 0 : s + 1)
            barrier_arrive(&ring.empty[s]);  // release, by each reader for itself; pairs with the filling warp
    }

    __device__ void store(const SlotInfo& info, const Sum& sum) {
        sink.begin(info);
#pragma unroll
        for (int v = 0; v < kUnits; ++v)
            if (Wire::kScaled || has_unit(info, v))
                sink.store(info, first_unit(info) + consumer + v * stride, sum.of[v], has_unit(info, v));
        sink.end(info);
    }

    template <bool kAddsBias>
    __device__ void sum_one(const SlotInfo& info) {
        uint4 bias[2][kUnits][kBiases];
        Sum sum = {};
#pragma unroll
        for (int v = 0; v < kUnits; ++v)
#pragma unroll
            for (int b = 0; b < 2; ++b)  // asked for early, added last
#pragma unroll
                for (int i = 0; i < kBiases; ++i)
                    if (kAddsBias && p.bias[b] && has_unit(info, v))
                        bias[b][v][i] = load_vector(p.bias[b] + info.token * p.bias_stride[b] +
                                                    ((first_unit(info) + consumer + v * stride) * kBiases + i) * 16);
        int left = info.num_rows;
        do {
            typename Wire::Unit rows[kRowBatch][kUnits];
            uint32_t batch = max(1, min(left, kRowBatch)), first = slot;
#pragma unroll
            for (uint32_t j = 0; j < kRowBatch; ++j) {
                if (j >= batch) continue;
                if (j != 0 || left != info.num_rows) barrier_wait(&ring.full[slot], round & 1);
                read(info, rows[j]);
            }
#pragma unroll
            for (int j = 0; j < kRowBatch; ++j)
                if (j < left) add(sum, rows[j]);
            leave(first, batch);
            left -= kRowBatch;
        } while (left > 0);
#pragma unroll
        for (int v = 0; v < kUnits; ++v)
#pragma unroll
            for (int b = 0; b < 2; ++b)
#pragma unroll
                for (int i = 0; i < kBiases; ++i)
                    if (kAddsBias && p.bias[b] && has_unit(info, v))
                        add_vector(sum.of[v] + 8 * i, bias[b][v][i]);
        store(info, sum);
    }

    // Two chunks of few rows together: what a chunk takes is mostly one wait after the other, not work.
    __device__ void sum_two(const SlotInfo& info, const SlotInfo& next) {
        uint32_t first = slot;
        Sum sum[2] = {};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const SlotInfo& of = i == 0 ? info : next;
#pragma unroll
            for (int j = 0; j < kShortRows; ++j) {
                if (j >= of.num_rows) continue;
                typename Wire::Unit row[kUnits];
                if (j != 0) barrier_wait(&ring.full[slot], round & 1);
                read(of, row);
                add(sum[i], row);
            }
        }
        leave(first, info.num_rows + next.num_rows);
        store(info, sum[0]);
        store(next, sum[1]);
    }
};

template <class Wire, class Sink>
__device__ inline void sum_chunks(const CombineParams& p, SlotRing& ring, const uint8_t* slots, uint32_t num_slots,
                                  Consumers consumers, Sink sink) {
    ChunkSummer<Wire, Sink>(p, ring, slots, num_slots, consumers, sink).run();
}

}  // namespace deepep::normal
