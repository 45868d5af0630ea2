// Combine across nodes: the slots of shared memory through which rows come, and the sums that leave.
#pragma once

#include "../shared/combine_peers.cuh"
#include "../shared/combine_sum.cuh"
#include "internode_rings.cuh"

namespace deepep::normal {

constexpr int kSumStages = 3;
constexpr int kPutsPending = 4;   // stores of a putting warp that may be on their way
constexpr int kLoadedAtOnce = 4;  // rows asked for together; fewer where there are fewer slots

struct InternodeCombineShared {
    SlotRing ring;
    PeerRows peers;
    int32_t ring_of[kMaxSlots];  // the block's ring that has a slot to give back once this chunk is here, or -1
    uint64_t sum_full[kSumStages], sum_empty[kSumStages];
    int32_t sum_ring[kSumStages];  // of the block, where the chunk of a sum goes; -1: no more
    int32_t sum_chunk[kSumStages];
    uint32_t state;  // of the warp that fills or empties rings
};

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

// Sums for a peer: chunks in shared memory, which the putting warp sends.
template <class Wire>
struct RingSink {
    const CombineParams& p;
    InternodeCombineShared& shared;
    uint8_t* stages;
    Consumers consumers;
    uint32_t count = 0;  // of chunks
    static constexpr bool kAddsBias = false;

    __device__ void taken(uint32_t) {}
    // acquire; pairs with the arrival of the putting warp
    __device__ void begin(const SlotInfo&) {
        barrier_wait(&shared.sum_empty[count % kSumStages], ~(count / kSumStages) & 1);
    }
    __device__ void store(const SlotInfo& info, uint32_t unit, const float* sum, bool mine) {
        uint8_t* to = stages + count % kSumStages * p.slot_bytes;
        Wire::put(p, to, unit - info.chunk * (p.chunk_bytes / 16), sum, mine);
    }
    __device__ void end(const SlotInfo& info) { pass_on(info.token, info.chunk); }
    __device__ void finish() {
        begin({});
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

    __device__ void taken(uint32_t slot) const {
        if (consumers.idx() != 0) return;
        int ring = shared.ring_of[slot];
        if (ring >= 0) note(&heads[ring].done, heads[ring].done + 1);
    }
    __device__ void finish() const {
        if (consumers.idx() == 0) note_more(&shared.state, kFinished);
    }
};

// Fills slots in order. All lanes of one warp.
template <class Wire>
struct SlotWriter {
    const CombineParams& p;
    InternodeCombineShared& shared;
    uint8_t* slots;
    uint32_t num_slots;
    uint32_t slot = 0, round = 0;  // of the next slot

    __device__ void advance(uint32_t count) {
        slot += count;
        if (slot >= num_slots) slot -= num_slots, ++round;
    }

    // Consumers leave slots in order, so the last of `count` speaks for all. acquire; pairs with their arrivals
    __device__ void await_empty(uint32_t count) {
        uint32_t last = slot + count - 1, last_round = round;
        if (last >= num_slots) last -= num_slots, ++last_round;
        barrier_wait(&shared.ring.empty[last], ~last_round & 1);
        __syncwarp();  // a lane that looks late must not find the slot filled and left again
    }

    // One slot without data, for a row that does not come; or (token -1) the end.
    __device__ void mark(int token, int chunk) {
        await_empty(1);
        if (threadIdx.x % 32 == 0) {
            shared.ring.info[slot] = {token, static_cast<int16_t>(chunk), 0};
            shared.ring_of[slot] = -1;
            barrier_arrive(&shared.ring.full[slot]);
        }
        advance(1);
    }

    // A chunk for each of `lanes`, in their order. from: null if the slot gets no data. first: the slot gets the lane's
    // info(). ring(): see ring_of.
    template <class Info, class Ring>
    __device__ void load(uint32_t lanes, const uint8_t* from, uint32_t num_bytes, int chunk, bool first, Info info,
                         Ring ring) {
        int lane = threadIdx.x % 32;
        uint32_t most = min(static_cast<uint32_t>(kLoadedAtOnce), num_slots);
        while (lanes != 0) {
            uint32_t order = __popc(lanes & ((1u << lane) - 1));
            bool mine = (lanes >> lane & 1) && order < most;
            uint32_t group = __ballot_sync(~0u, mine), count = __popc(group);
            await_empty(count);
            if (mine) {
                uint32_t s = slot + order;
                if (s >= num_slots) s -= num_slots;
                if (first) shared.ring.info[s] = info();
                shared.ring_of[s] = ring();
                if (from) {
                    barrier_arrive_expect(&shared.ring.full[s], num_bytes);
                    Wire::load(p, slots + s * p.slot_bytes, from, chunk, num_bytes, &shared.ring.full[s]);
                } else {
                    barrier_arrive(&shared.ring.full[s]);
                }
            }
            advance(count);
            lanes &= ~group;
        }
    }
};

__device__ __forceinline__ const uint8_t* peer_chunk(const PeerRows& peers, int rank, int32_t row, uint32_t begin) {
    return at<const uint8_t>(peers.x_base[rank] + begin, static_cast<uint64_t>(row) * peers.x_stride[rank]);
}

}  // namespace deepep::normal
