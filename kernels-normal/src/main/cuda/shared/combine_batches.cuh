// How chunks of rows come into the shared memory of a combining block: one warp asks for them, the consumer warps sum.
//
// They come in batches of a token's rows. A batch has a barrier on which all its bytes are waited for and one by which
// consumers leave it, because waits and arrivals are what a sum takes longest for; its rows lie in consecutive slots,
// of which it takes as many as it has rows. Batches are filled and left in order.
#pragma once

#include "combine_wire.cuh"
#include "deepep/block.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// Rows that a consumer reads together: as many as it has registers for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int kBatchRows = 3;
#else
constexpr int kBatchRows = 4;
#endif

constexpr uint32_t kMaxBatches = 32;  // at once; a power of two

// Rows of one chunk of a token.
struct Batch {
    int32_t token;  // kNoMore: no batch
    uint16_t chunk;
    uint8_t num_rows;  // 0 .. kBatchRows
    bool is_last;      // of the token's chunk
};
static_assert(sizeof(Batch) == 8);

constexpr int32_t kNoMore = -1;

struct BatchRing {
    uint64_t full[kMaxBatches], empty[kMaxBatches];
    Batch batch[kMaxBatches];

    __device__ static uint32_t at(uint32_t number) { return number % kMaxBatches; }
    __device__ static uint32_t parity(uint32_t number) { return number / kMaxBatches & 1; }
};

// The threads of a block past its service warps, `first` threads in all.
struct Consumers {
    uint32_t first;

    __device__ uint32_t idx() const { return threadIdx.x - first; }
    __device__ uint32_t count() const { return blockDim.x - first; }
};

// All threads; the block synchronises before the ring is used.
__device__ inline void init_batches(BatchRing& ring, Consumers consumers) {
    if (threadIdx.x >= kMaxBatches) return;
    barrier_init(&ring.full[threadIdx.x], 1);
    barrier_init(&ring.empty[threadIdx.x], consumers.count());
    barrier_init_fence();
}

// Fills the ring: for each batch await_room, announce, load in the lanes that have a row, close. All lanes of one warp.
template <class Wire>
class BatchWriter {
  public:
    __device__ BatchWriter(const CombineParams& params, BatchRing& batch_ring, uint8_t* ring_slots, uint32_t number)
        : p(params), ring(batch_ring), slots(ring_slots), num_slots(number), free(number) {}

    // Until there is room for the next batch.
    __device__ void await_room(uint32_t num_rows) {
        while (free < num_rows || head - tail == kMaxBatches) {
            uint32_t i = BatchRing::at(tail);
            // acquire; pairs with the consumers' arrivals in leave. One barrier for all lanes: racecheck follows it.
            barrier_wait(&ring.empty[i], BatchRing::parity(tail));
            free += ring.batch[i].num_rows;
            ++tail;
        }
        __syncwarp();  // a lane that looks late must not find the batch filled and left again
    }

    // The next batch, for whose rows there is room. leads: in one lane, whose `batch` it is. bytes: of each row.
    __device__ void announce(bool leads, const Batch& batch, uint32_t bytes) {
        if (leads) {
            ring.batch[idx()] = batch;
            barrier_arrive_expect(&ring.full[idx()], batch.num_rows * bytes);
        }
        __syncwarp();  // bytes are expected before they come
    }

    // One lane for each row. from: where the chunk's elements begin.
    __device__ void load(uint32_t row, const uint8_t* from, int chunk, uint32_t bytes) {
        uint32_t s = wrap(slot + row);
        Wire::load(p, slots + s * p.slot_bytes, from, chunk, bytes, &ring.full[idx()]);
    }

    __device__ void close(uint32_t num_rows) {
        slot = wrap(slot + num_rows);
        free -= num_rows;
        ++head;
    }

    // A batch without rows.
    __device__ void mark(int token, int chunk) {
        await_room(0);
        announce(threadIdx.x % 32 == 0, {token, static_cast<uint16_t>(chunk), 0, true}, 0);
        close(0);
    }

    // There are no more.
    __device__ void finish() { mark(kNoMore, 0); }

    // Of the batch at hand, in the ring.
    __device__ uint32_t idx() const { return BatchRing::at(head); }

  private:
    const CombineParams& p;
    BatchRing& ring;
    uint8_t* slots;
    const uint32_t num_slots;
    uint32_t head = 0, tail = 0;  // the batch at hand, and the first that may not have been left
    uint32_t slot = 0, free;      // the first slot of the batch at hand, and how many are free

    __device__ uint32_t wrap(uint32_t s) const { return s >= num_slots ? s - num_slots : s; }
};

}  // namespace deepep::normal
