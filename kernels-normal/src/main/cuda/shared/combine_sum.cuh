// The summing half of combine: the consumer warps sum the rows of each chunk in fp32 and hand the rounded sum to a
// sink.
#pragma once

#include "combine_batches.cuh"
#include "combine_wire.cuh"
#include "deepep/bf16.cuh"
#include "deepep/bulk_copy.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// Where sums of a rank's own tokens go: bf16 rows of `out`, the biases added in order before the rounding.
template <class Wire>
struct TokenSink {
    const CombineParams& p;
    static constexpr bool kAddsBias = true;

    __device__ void taken(uint32_t, int) const {}
    __device__ void begin() const {}
    __device__ void store(const Batch& batch, uint32_t unit, const float* sum, bool mine) const {
        constexpr int kPerUnit = Wire::kChannels / 8;
        uint64_t row = p.out + batch.token * p.out_stride;
#pragma unroll
        for (int i = 0; i < kPerUnit; ++i)
            if (mine) store_vector(row + (unit * kPerUnit + i) * 16, round_vector(sum + 8 * i));
    }
    __device__ void end(const Batch&) const {}
    __device__ void finish() const {}
};

// The consumer warps: units consumer, consumer + num_consumers, ... of each chunk, a batch at a time.
// A sink sees, in each consumer: taken(b, j) when row j of the batch in the ring's place b has come; for each chunk
// begin(), store() with the index of the unit in the row, end(); at last finish(). Where rows have scales, store() is
// called by all lanes of a warp, `mine` by those that have a unit.
template <class Wire, class Sink>
class ChunkSummer {
  public:
    __device__ ChunkSummer(const CombineParams& params, BatchRing& batch_ring, const uint8_t* ring_slots,
                           uint32_t num_slots, Consumers consumers, Sink& to)
        : p(params), ring(batch_ring), slots(ring_slots), end_of_slots(num_slots * params.slot_bytes),
          consumer(consumers.idx()), stride(consumers.count()), sink(to) {}

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
    BatchRing& ring;
    const uint8_t* slots;
    const uint32_t end_of_slots, consumer, stride;
    Sink& sink;
    uint32_t number = 0, slot = 0;  // of the batch at hand, and where its next row is among the slots, in bytes

    struct Sum {
        float of[kUnits][kChannels];
    };

    // What this consumer has of a chunk.
    struct Part {
        uint32_t first;         // unit of the chunk in the row
        uint32_t unit[kUnits];  // in the chunk; of those that it has not, it reads the first, as loads take no branches
        bool has[kUnits];
    };

    __device__ Part part(const Batch& batch) const {
        Part part;
        part.first = batch.chunk * (static_cast<uint32_t>(p.chunk_bytes) / 16);
        uint32_t left = static_cast<uint32_t>(p.hidden) / kChannels - part.first;
        uint32_t num_units = min(static_cast<uint32_t>(p.chunk_bytes) / 16, left);
#pragma unroll
        for (int v = 0; v < kUnits; ++v) {
            part.has[v] = consumer + v * stride < num_units;
            part.unit[v] = part.has[v] ? consumer + v * stride : 0;
        }
        return part;
    }

    // Asked for early, added last.
    struct Biases {
        uint4 of[2][kUnits][kBiases];

        // body(b, v, i): of each bias there is, in order, what this consumer has.
        template <class Body>
        __device__ static void for_each(const ChunkSummer& s, const Part& part, Body body) {
#pragma unroll
            for (int b = 0; b < 2; ++b)
#pragma unroll
                for (int v = 0; v < kUnits; ++v)
#pragma unroll
                    for (int i = 0; i < kBiases; ++i)
                        if (s.p.bias[b] && part.has[v]) body(b, v, i);
        }
        __device__ void load(const ChunkSummer& s, const Batch& batch, const Part& part) {
            for_each(s, part, [&](int b, int v, int i) {
                of[b][v][i] = load_vector(s.p.bias[b] + batch.token * s.p.bias_stride[b] +
                                          ((part.first + part.unit[v]) * kBiases + i) * 16);
            });
        }
        __device__ void add(const ChunkSummer& s, Sum& sum, const Part& part) const {
            for_each(s, part, [&](int b, int v, int i) { add_vector(sum.of[v] + 8 * i, of[b][v][i]); });
        }
    };

    __device__ Batch await() {
        barrier_wait(&ring.full[BatchRing::at(number)], BatchRing::parity(number));
        return ring.batch[BatchRing::at(number)];
    }

    template <bool kAddsBias>
    __device__ void run() {
        for (;;) {
            Batch batch = await(), next;
            if (batch.token == kNoMore) return;
            if (!kAddsBias && is_short(batch) && find_next(next)) {
                sum_two(batch, next);
            } else {
                sum_one<kAddsBias>(batch);
            }
        }
    }

    __device__ static bool is_short(const Batch& batch) {
        return batch.num_rows > 0 && batch.num_rows <= kShortRows && batch.is_last;
    }

    // The batch behind a short one, if it is here and short too. Warps may find different things.
    __device__ bool find_next(Batch& next) const {
        uint32_t i = BatchRing::at(number + 1);
        if (!__all_sync(~0u, barrier_test(&ring.full[i], BatchRing::parity(number + 1)))) return false;
        next = ring.batch[i];
        return next.token != kNoMore && is_short(next);
    }

    // Adds as many rows of the batch at hand.
    template <int kRows>
    __device__ void add(Sum& sum, const Part& part) {
        typename Wire::Unit rows[kRows][kUnits];
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
            sink.taken(BatchRing::at(number), j);
#pragma unroll
            for (int v = 0; v < kUnits; ++v) rows[j][v] = Wire::read(p, slots + slot, part.unit[v]);
            slot += p.slot_bytes;
            if (slot == end_of_slots) slot = 0;
        }
#pragma unroll
        for (int j = 0; j < kRows; ++j)
#pragma unroll
            for (int v = 0; v < kUnits; ++v) Wire::add(sum.of[v], rows[j][v]);
    }

    // Adds the batch at hand, and leaves it. Numbers of rows have code of their own: it runs without branches.
    template <int kMost>
    __device__ void add_batch(const Batch& batch, Sum& sum, const Part& part) {
        static_assert(kBatchRows <= 4);
        switch (batch.num_rows) {
            case 1: add<1>(sum, part); break;
            case 2: add<2>(sum, part); break;
            case 3:
                if constexpr (kMost >= 3) add<3>(sum, part);
                break;
            case 4:
                if constexpr (kMost >= 4) add<4>(sum, part);
                break;
        }
        fence_async_proxy_shared();  // read by ordinary loads, overwritten by the copy engine
        barrier_arrive(&ring.empty[BatchRing::at(number)]);  // release, by each reader; pairs with await_room
        ++number;
    }

    __device__ void store(const Batch& batch, const Sum& sum, const Part& part) {
        sink.begin();
#pragma unroll
        for (int v = 0; v < kUnits; ++v)
            if (Wire::kScaled || part.has[v])
                sink.store(batch, part.first + part.unit[v], sum.of[v], part.has[v]);
        sink.end(batch);
    }

    template <bool kAddsBias>
    __device__ void sum_one(Batch batch) {
        Part part = this->part(batch);
        Biases bias;
        if (kAddsBias) bias.load(*this, batch, part);
        Sum sum = {};
        add_batch<kBatchRows>(batch, sum, part);
        while (!batch.is_last) {
            batch = await();
            add_batch<kBatchRows>(batch, sum, part);
        }
        if (kAddsBias) bias.add(*this, sum, part);
        store(batch, sum, part);
    }

    // Two chunks of few rows together: what a chunk takes is mostly one wait after the other, not work.
    __device__ void sum_two(const Batch& batch, const Batch& next) {
        Sum sum[2] = {};
        Part parts[2] = {part(batch), part(next)};
        add_batch<kShortRows>(batch, sum[0], parts[0]);
        add_batch<kShortRows>(next, sum[1], parts[1]);
        store(batch, sum[0], parts[0]);
        store(next, sum[1], parts[1]);
    }
};

template <class Wire, class Sink>
__device__ inline void sum_chunks(const CombineParams& p, BatchRing& ring, const uint8_t* slots, uint32_t num_slots,
                                  Consumers consumers, Sink sink) {
    ChunkSummer<Wire, Sink>(p, ring, slots, num_slots, consumers, sink).run();
}

}  // namespace deepep::normal
