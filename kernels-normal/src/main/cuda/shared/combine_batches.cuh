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
constexpr uint32_t kBatchRows = 3;
#else
constexpr uint32_t kBatchRows = 4;
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

// A row that a lane of the loading warp stands for.
struct LaneRow {
    bool is_used;         // the lane stands for a row, or for a token that has none
    bool has_row;
    uint32_t mates;       // the used lanes of its token, beside each other and in the order of the sum
    int32_t token;
    const uint8_t* from;  // of a row: where the chunk's elements begin
};

// Fills the ring. All lanes of one warp.
//
// Room is waited for in parts of the slots: what is waited for is idle meanwhile, which rows over a link need most, but
// asking for few rows at a time takes the warp longer.
template <class Wire>
class BatchWriter {
  public:
    // is_local: all rows lie on this GPU.
    __device__ BatchWriter(const CombineParams& params, BatchRing& batch_ring, uint8_t* ring_slots, uint32_t number,
                           bool is_local)
        : p(params), ring(batch_ring), slots(ring_slots), num_slots(number),
          most_rows(max(number / (is_local ? 2 : 4), kBatchRows)), free(number) {}

    // Asks for a chunk of the rows of all used lanes. more: others of their token follow. note(b, j): by each lane that
    // has a row, which is the j-th of the batch in the ring's place b; before the batch is announced.
    template <class Note>
    __device__ __forceinline__ void load(const LaneRow& mine, int chunk, bool more, Note note) {
        uint32_t lane = threadIdx.x % 32, before_me = (1u << lane) - 1, bytes = Wire::num_bytes(p, chunk);
        uint32_t order = __popc(mine.mates & before_me), num_mates = __popc(mine.mates);
        uint32_t j = order % kBatchRows, num_rows = mine.has_row ? min(num_mates - (order - j), kBatchRows) : 0;
        bool leads = mine.is_used && j == 0;
        uint32_t left = __ballot_sync(~0u, mine.is_used), leaders = __ballot_sync(~0u, leads);
        uint32_t rows = __ballot_sync(~0u, mine.has_row);
        uint32_t batch = __popc(leaders & before_me) - (leads ? 0 : 1), row = __popc(rows & before_me);
        Batch my_batch{mine.token, static_cast<uint16_t>(chunk), static_cast<uint8_t>(num_rows),
                       order + kBatchRows >= num_mates && !more};
        while (left != 0) {
            uint32_t done = __popc(rows & ~left);  // rows asked for
            bool now = (left >> lane & 1) && row - j + num_rows <= done + most_rows;
            uint32_t group = __ballot_sync(~0u, now);
            uint32_t count = __popc(group & rows), num_batches = __popc(group & leaders);
            await_room(count, num_batches);
            uint32_t b = BatchRing::at(head + batch - __popc(leaders & ~left));
            if (now && mine.has_row) note(b, j);
            __syncwarp();  // all of a batch is noted
            if (now && leads) announce(b, my_batch, bytes);
            __syncwarp();  // bytes are expected before they come
            if (now && mine.has_row)
                Wire::load(p, slots + wrap(slot + row - done) * p.slot_bytes, mine.from, chunk, bytes, &ring.full[b]);
            slot = wrap(slot + count);
            free -= count;
            head += num_batches;
            left &= ~group;
        }
    }

    // A batch without rows, the last of its token's chunk.
    __device__ void mark(int token, int chunk) {
        await_room(0, 1);
        if (threadIdx.x % 32 == 0)
            announce(BatchRing::at(head), {token, static_cast<uint16_t>(chunk), 0, true}, 0);
        ++head;
    }

    // There are no more.
    __device__ void finish() { mark(kNoMore, 0); }

  private:
    const CombineParams& p;
    BatchRing& ring;
    uint8_t* slots;
    const uint32_t num_slots, most_rows;
    uint32_t head = 0, tail = 0;  // the next batch, and the first that may not have been left
    uint32_t slot = 0, free;      // the next slot, and how many are free

    __device__ uint32_t wrap(uint32_t s) const { return s >= num_slots ? s - num_slots : s; }

    __device__ void await_room(uint32_t num_rows, uint32_t num_batches) {
        while (free < num_rows || head + num_batches - tail > kMaxBatches) {
            uint32_t i = BatchRing::at(tail);
            // acquire; pairs with the consumers' arrivals. One barrier for all lanes: racecheck follows it.
            barrier_wait(&ring.empty[i], BatchRing::parity(tail));
            free += ring.batch[i].num_rows;
            ++tail;
        }
        __syncwarp();  // a lane that looks late must not find the batch filled and left again
    }

    __device__ void announce(uint32_t b, const Batch& batch, uint32_t bytes) {
        ring.batch[b] = batch;
        barrier_arrive_expect(&ring.full[b], batch.num_rows * bytes);
    }
};

}  // namespace deepep::normal
