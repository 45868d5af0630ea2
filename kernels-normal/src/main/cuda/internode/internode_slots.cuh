// Combine across nodes: the shared memory through which rows come, and the sums that leave.
#pragma once

#include "../shared/combine_batches.cuh"
#include "../shared/combine_peers.cuh"
#include "../shared/combine_sum.cuh"
#include "internode_rings.cuh"

namespace deepep::normal {

constexpr int kSumStages = 3;
constexpr int kPutsPending = 4;  // stores of a putting warp that may be on their way

struct InternodeCombineShared {
    InternodeCombineParams params;  // for functions out of line, to which they would be memory that acquires make slow
    BatchRing ring;
    PeerRows peers;
    int32_t ring_of[kMaxBatches][kBatchRows];  // the block's ring that gets a slot back once this row is here, or -1
    uint64_t sum_full[kSumStages], sum_empty[kSumStages];
    int32_t sum_ring[kSumStages];  // of the block, where the chunk of a sum goes; -1: no more
    int32_t sum_chunk[kSumStages];
    uint32_t state;  // of the warp that fills or empties rings
    bool goes_on;    // the verdict
};

// The block's. Functions out of line that name it need no register for where it is.
__device__ __forceinline__ InternodeCombineShared& combine_shared() {
    __shared__ InternodeCombineShared shared;
    return shared;
}

// The first num_home_blocks blocks compute this rank's tokens, the others sum for peers. Both kinds deal out tokens
// in turn, and num_channels is the least common multiple of their numbers: token t goes by the ring of channel t %
// num_channels, which one block fills and one empties.
__device__ __forceinline__ bool is_home_block(const Internode& b) {
    return static_cast<int>(blockIdx.x) < b.num_home_blocks;
}

// A block's tokens are also first, first + step, ..., those of its sets in turn.
__device__ __forceinline__ BlockRings combine_rings(const Internode& b) {
    int block = blockIdx.x, num_blocks = gridDim.x;
    bool home = is_home_block(b);
    int step = home ? b.num_home_blocks : num_blocks - b.num_home_blocks;
    return {home ? block : block - b.num_home_blocks, step, b.num_channels / step};
}

// Chunks of rows that a block holds in shared memory; the rest of the slots is for sums.
__device__ __forceinline__ uint32_t num_slots_of_block(const InternodeCombineParams& params) {
    return params.local.num_slots - (is_home_block(params.between) ? 0 : kSumStages);
}

// The states of a block's rings, in shared memory.
template <class Ring>
__device__ __forceinline__ Ring* rings_of_block(const CombineParams& p) {
    return reinterpret_cast<Ring*>(dynamic_shared() + p.rings_offset);
}

// Sums for a peer: chunks in shared memory, which the putting warp sends.
template <class Wire>
struct RingSink {
    const CombineParams& p;
    InternodeCombineShared& shared;
    uint8_t* stages;
    Consumers consumers;
    uint32_t count = 0;  // of chunks
    static constexpr bool kAddsBias = false;

    __device__ void taken(uint32_t, int) {}
    // acquire; pairs with the arrival of the putting warp
    __device__ void begin() {
        barrier_wait(&shared.sum_empty[count % kSumStages], ~(count / kSumStages) & 1);
    }
    __device__ void store(const Batch& batch, uint32_t unit, const float* sum, bool mine) {
        uint8_t* to = stages + count % kSumStages * p.slot_bytes;
        Wire::put(p, to, unit - batch.chunk * (p.chunk_bytes / 16), sum, mine);
    }
    __device__ void end(const Batch& batch) { pass_on(batch.token, batch.chunk); }
    __device__ void finish() {
        begin();
        pass_on(-1, 0);
    }
    __device__ void pass_on(int ring, int chunk) {
        fence_async_proxy_shared();
        if (consumers.idx() == 0) {
            shared.sum_ring[count % kSumStages] = ring;
            shared.sum_chunk[count % kSumStages] = chunk;
        }
        barrier_arrive(&shared.sum_full[count % kSumStages]);  // release; pairs with put_sums
        ++count;
    }
};

// A rank's own tokens: as on one node, and a ring's slot is free again once its row is in shared memory.
template <class Wire>
struct OwnerSink : TokenSink<Wire> {
    InternodeCombineShared& shared;
    RingHead* heads;
    Consumers consumers;

    __device__ OwnerSink(const CombineParams& p, InternodeCombineShared& s, RingHead* h, Consumers c)
        : TokenSink<Wire>{p}, shared(s), heads(h), consumers(c) {}

    __device__ void taken(uint32_t b, int j) const {
        if (consumers.idx() != 0) return;
        int ring = shared.ring_of[b][j];
        if (ring >= 0) note(&heads[ring].done, heads[ring].done + 1);
    }
    __device__ void finish() const {
        if (consumers.idx() == 0) note_more(&shared.state, kFinished);
    }
};

}  // namespace deepep::normal
