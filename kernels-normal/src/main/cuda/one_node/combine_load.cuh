// The loading warp of a combine on one node: which rows of which token come next, and into which slots of shared
// memory.
#pragma once

#include "../shared/combine_peers.cuh"
#include "../shared/combine_sum.cuh"
#include "combine_stage.cuh"
#include "deepep/bulk_copy.cuh"

namespace deepep::normal {

struct CombineShared {
    SlotRing ring;
    PeerRows peers;
    int32_t first_staged[kMaxRanks];  // this rank's first row at a peer that stages; -1: the peer's rows are there
    int32_t room[kMaxRanks];          // where each peer takes the rows of this rank, in rows of its region
    bool pushes;                      // all ranks do
    StageShared stage[kStageWarps];
};

// A block among those that pull from the start; less than 0 for those that stage first.
__device__ __forceinline__ int puller(const CombineParams& p) { return blockIdx.x - p.num_stage_blocks; }
__device__ __forceinline__ int num_pullers(const CombineParams& p) { return gridDim.x - p.num_stage_blocks; }

// Tokens that a block takes at a time: a few, because asking for them takes longer than loading one; fewer where blocks
// would end far apart.
constexpr int kTokensPerTicket = kIsWide ? 1 : 32 / kMaxRanks;

__device__ __forceinline__ int tokens_per_ticket(const CombineParams& p) {
    return max(1, min(kTokensPerTicket, p.num_tokens / (8 * num_pullers(p))));
}

// Row of token t at `rank`, or -1.
__device__ __forceinline__ int32_t token_row(const CombineParams& p, const CombineShared& shared, uint32_t epoch, int t,
                                             int rank) {
    if (rank >= p.group.num_ranks || t >= p.num_tokens) return -1;
    int32_t row = at<const int32_t>(p.token_rows)[static_cast<size_t>(t) * p.group.num_ranks + rank];
    return checked_row(p.group, shared.peers, epoch, t, rank, row);
}

// One lane: asks for a chunk of a row.
template <class Wire>
__device__ __forceinline__ void load_row_chunk(const CombineParams& p, CombineShared& shared, uint8_t* slots,
                                               uint32_t s, int chunk, int rank, int32_t row) {
    uint32_t begin = chunk * p.chunk_bytes, bytes = Wire::num_bytes(p, chunk);
    barrier_arrive_expect(&shared.ring.full[s], bytes);
    uint64_t offset = static_cast<uint64_t>(row) * shared.peers.x_stride[rank];
    auto from = at<const uint8_t>(shared.peers.x_base[rank] + begin, offset);
    Wire::load(p, slots + s * p.slot_bytes, from, chunk, bytes, &shared.ring.full[s]);
}

// Tells the consumers that there are no more. Warp 0.
__device__ __forceinline__ void end_of_chunks(CombineShared& shared, uint32_t slot, uint32_t round) {
    if (threadIdx.x % 32 != 0) return;
    barrier_wait(&shared.ring.empty[slot], ~round & 1);
    shared.ring.info[slot].token = -1;
    barrier_arrive(&shared.ring.full[slot]);
}

constexpr uint32_t kSenderMask = kIsWide ? ~0u : (1u << kMaxRanks % 32) - 1;

struct TokenSenders {
    int token;
    uint32_t ranks;  // that have a row of it, as a bit mask
};

// Warp 0. Asks for a token's rows, a slot for each. is_mine: this lane stands for the row `row` of it at `rank`.
template <class Wire>
__device__ __forceinline__ void load_token(const CombineParams& p, CombineShared& shared, uint8_t* slots,
                                           TokenSenders senders, bool is_mine, int rank, int32_t row, uint32_t& slot,
                                           uint32_t& round) {
    uint32_t count = max(1, __popc(senders.ranks));  // a token that went nowhere takes an empty slot
    bool mine = is_mine && (senders.ranks == 0 ? rank == 0 : row >= 0);
    uint32_t order = __popc(senders.ranks & ((1u << rank) - 1));
    for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
        // acquire; pairs with every consumer's arrival. Consumers leave the slots in their order, so the last one
        // that the token needs speaks for all; one barrier for all lanes is also what racecheck can follow.
        uint32_t last = slot + count - 1, last_round = round;
        if (last >= static_cast<uint32_t>(p.num_slots)) last -= p.num_slots, ++last_round;
        barrier_wait(&shared.ring.empty[last], ~last_round & 1);
        __syncwarp();  // a lane that looks late must not find the slot filled and left again
        if (mine) {
            uint32_t s = slot + order;
            if (s >= static_cast<uint32_t>(p.num_slots)) s -= p.num_slots;
            if (order == 0)
                shared.ring.info[s] = {senders.token, static_cast<int16_t>(chunk),
                                       static_cast<int16_t>(__popc(senders.ranks))};
            if (row >= 0) {
                load_row_chunk<Wire>(p, shared, slots, s, chunk, rank, row);
            } else {
                barrier_arrive(&shared.ring.full[s]);
            }
        }
        slot += count;
        if (slot >= static_cast<uint32_t>(p.num_slots)) slot -= p.num_slots, ++round;
    }
}

// Warp 0. Lane l stands for rank l % 8 and for token l / 8 of those at hand; it fills the slot for the row there. All
// rows of a token are asked for at once. Tokens are handed out to the blocks in their order, because SMs do not get
// equal shares of the links.
template <class Wire>
__device__ inline void load_chunks(const CombineParams& p, const OneNode& node, CombineShared& shared, uint8_t* slots,
                                   uint32_t epoch) {
    int lane = threadIdx.x % 32, rank = lane % kMaxRanks, own = lane / kMaxRanks, at_once = tokens_per_ticket(p);
    uint32_t slot = 0, round = 0;  // of the next slot
    uint32_t* cursor = &state_of(p.group)->cursor;
    auto row_of = [&](int first) { return own < at_once ? token_row(p, shared, epoch, first + own, rank) : -1; };
    uint32_t ticket = 0;
    auto draw = [&] {
        if (lane == 0) ticket = atomicAdd(cursor, 1);
    };
    auto drawn = [&] { return (num_pullers(p) + __shfl_sync(~0u, ticket, 0)) * at_once; };
    draw();
    int first = puller(p) * at_once;
    if (first < 0) first = drawn(), draw();
    int32_t row = row_of(first);
    int32_t first_staged = rank < p.group.num_ranks ? shared.first_staged[rank] : -1;
    bool waits = __any_sync(~0u, first_staged >= 0);
    while (first < p.num_tokens) {
        int next = drawn();
        draw();
        int32_t next_row = row_of(next);
        if (waits) {
            bool staged = row < 0 || first_staged < 0 || await_staged(p, node, epoch, rank, first_staged, row);
            fence_async_proxy();  // the flag was an ordinary load, the rows are the copy engine's
            // After a fault nobody waits again; what is summed is void.
            waits = __all_sync(~0u, staged);
        }
        uint32_t all_senders = __ballot_sync(~0u, row >= 0);
        for (int i = 0; i < at_once && first + i < p.num_tokens; ++i)
            load_token<Wire>(p, shared, slots,
                             {first + i, all_senders >> i * kMaxRanks & kSenderMask}, own == i,
                       rank, row, slot, round);
        first = next;
        row = next_row;
    }
    end_of_chunks(shared, slot, round);
}

// Rows of a token that are asked for together in a large node: as few as any number of slots has room for, many times.
constexpr int kRowsAtOnce = 4;

// Warp 0, in a large node, one token at a time: in round r lane l stands for rank 32 * r + l. A token may have more
// rows than there are slots; they are asked for in the order of the ranks, a few at a time.
template <class Wire>
__device__ inline void load_many_chunks(const CombineParams& p, CombineShared& shared, uint8_t* slots,
                                        uint32_t epoch) {
    int lane = threadIdx.x % 32;
    uint32_t slot = 0, round = 0, num_slots = p.num_slots;  // of the next row
    uint32_t* cursor = &state_of(p.group)->cursor;
    for (int t = puller(p); t < p.num_tokens;) {
        uint32_t ticket = lane == 0 ? atomicAdd(cursor, 1) : 0;  // asked for early, used for the next token
        int32_t row[kRounds], order[kRounds], count = 0;
#pragma unroll
        for (int r = 0; r < kRounds; ++r) {
            row[r] = token_row(p, shared, epoch, t, r * 32 + lane);
            uint32_t senders = __ballot_sync(~0u, row[r] >= 0);
            order[r] = count + __popc(senders & ((1u << lane) - 1));
            count += __popc(senders);
        }
        for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
            for (int first = 0; first < max(1, count); first += kRowsAtOnce) {
                uint32_t rows = max(1, min(count - first, kRowsAtOnce)), last = slot + rows - 1, last_round = round;
                if (last >= num_slots) last -= num_slots, ++last_round;
                barrier_wait(&shared.ring.empty[last], ~last_round & 1);  // acquire; as in load_token
                __syncwarp();
                if (first == 0 && lane == 0)
                    shared.ring.info[slot] = {t, static_cast<int16_t>(chunk), static_cast<int16_t>(count)};
                __syncwarp();  // before the slot is handed over
                if (count == 0 && lane == 0) barrier_arrive(&shared.ring.full[slot]);
#pragma unroll
                for (int r = 0; r < kRounds; ++r) {
                    if (row[r] < 0 || order[r] < first || order[r] >= first + kRowsAtOnce) continue;
                    uint32_t s = slot + order[r] - first;
                    if (s >= num_slots) s -= num_slots;
                    load_row_chunk<Wire>(p, shared, slots, s, chunk, r * 32 + lane, row[r]);
                }
                slot += rows;
                if (slot >= num_slots) slot -= num_slots, ++round;
            }
        }
        t = num_pullers(p) + __shfl_sync(~0u, ticket, 0);
    }
    end_of_chunks(shared, slot, round);
}

}  // namespace deepep::normal
