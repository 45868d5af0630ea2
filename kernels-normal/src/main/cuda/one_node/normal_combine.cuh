// Normal-mode combine on one node: every rank pulls the rows of its tokens from the peers and sums them.
//
// Each rank launches it once per call. The header says where a rank's rows lie (its own heap or peer-visible memory);
// having read every header, a rank pulls chunks of rows into shared memory, sums them in fp32 in the order of the
// ranks, adds the biases in order and rounds once to bf16. Weights are summed in the same order. The closing flags say
// that x may be overwritten.
//
// Rows that peers cannot read (stage_x) are brought to them, or to x, by the first num_stage_blocks blocks of the
// launch, a batch at a time: see combine_stage.cuh. Then these blocks sum with the others what is left.
//
// Rows that travel as fp8 have been cast into the heap before (normal_cast.cu): none is staged.
//
// Writes: out, out_weights, the status block; if stage_x, the peers' combine regions or x, and flags at the peers.
// Reads: the peers' x and weights, token_rows, handle_epoch, biases; stage_x and source_rows.
//
// Launch: any number of blocks up to 256, more than num_stage_blocks, all of them resident together. Threads: 64 +
// consumers, where consumers is a multiple of 32, at least 192 and at least chunk_bytes / 32 (fp8: 16); warp 0 loads,
// warp 1 sums weights, the others sum rows; in blocks that stage, warps 0 to 3 do. Dynamic shared memory:
// num_slots * slot_bytes of the wire.
#pragma once

#include "../shared/combine_peers.cuh"
#include "../shared/combine_sum.cuh"
#include "../shared/exchange.cuh"
#include "../shared/normal_params.cuh"
#include "combine_stage.cuh"
#include "deepep/block.cuh"
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

// One block, all threads.
template <class Wire>
__device__ inline void announce_combine(const CombineParams& p, const OneNode& node, uint32_t epoch,
                                        HeaderTable& table) {
    if (threadIdx.x < 32) {
        int32_t value = 0;
        switch (threadIdx.x) {
            case kOp: value = kOpCombine; break;
            case kHidden: value = p.hidden; break;
            case kTopk: value = p.topk; break;
            case kMasked: value = node.masked; break;
            default: value = offer_word(p, threadIdx.x);
        }
        if (Wire::kScaled && threadIdx.x == kNumScales) value = p.hidden / kFp8ScaleChannels;
        int reader = threadIdx.x - kHeaderCounts;
        int32_t room = offer_room(p, reader);
        if (reader >= 0) value = room;
        table.mine[threadIdx.x] = handle_word(p.handle_epoch, threadIdx.x, value, node.masked);
    }
    fence_sys();  // x, written by earlier launches, comes before the words that offer it
    __syncthreads();
    send_header(node, epoch, table, nullptr, 0);
}

// All threads of every block: waits for the headers and learns where each peer's rows are. False: nothing to pull.
__device__ inline bool judge_combine(const CombineParams& p, const OneNode& node, uint32_t epoch, HeaderTable& table,
                                     CombineShared& shared) {
    const Group& g = p.group;
    bool arrived = read_headers(node, epoch, table);
    if (threadIdx.x < 32 && arrived) {
        Fault fault = judge_headers(node, table);
        if (threadIdx.x == 0 && fault.code != kOk) record_fault(g, epoch, fault);
        if (threadIdx.x == 0) table.verdict = fault.code;
    }
    if (threadIdx.x < g.num_ranks && arrived) {
        int d = threadIdx.x;
        bool pushes = true;
        for (int s = 0; s < g.num_ranks; ++s)
            pushes = pushes && (table.of[s][kHeaderCounts] >= 0 || !node.takes_part(s));
        shared.peers.learn(g, d, [&](int word) { return table.of[d][word]; });
        int32_t room = table.of[d][kHeaderCounts + g.rank];
        shared.room[d] = room;
        shared.first_staged[d] = room == kAllInPlace || !node.takes_part(d) ? -1 : sent_rows(p, d).first;
        if (d == g.rank && p.stage_x) {  // one's own rows are read where they are
            shared.peers.x_base[d] = p.stage_x;
            shared.peers.x_stride[d] = static_cast<int32_t>(p.stage_x_stride);
            shared.first_staged[d] = -1;
        } else if (pushes) {
            int64_t moved = table.of[g.rank][kHeaderCounts + d] - shared.first_staged[d];
            shared.peers.x_base[d] = g.heap[g.rank] + p.x + moved * static_cast<int64_t>(p.x_stride);
        }
        if (d == 0) shared.pushes = pushes;
    }
    __syncthreads();
    return arrived && table.verdict == kOk;
}

// Tokens that a block takes at a time: a few, because asking for them takes longer than loading one; fewer where blocks
// would end far apart.
constexpr int kTokensPerTicket = 32 / kMaxRanks;

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
                uint32_t begin = chunk * p.chunk_bytes, bytes = Wire::num_bytes(p, chunk);
                barrier_arrive_expect(&shared.ring.full[s], bytes);
                uint64_t offset = static_cast<uint64_t>(row) * shared.peers.x_stride[rank];
                auto from = at<const uint8_t>(shared.peers.x_base[rank] + begin, offset);
                Wire::load(p, slots + s * Wire::slot_bytes(p), from, chunk, bytes, &shared.ring.full[s]);
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
                             {first + i, all_senders >> i * kMaxRanks & (1u << kMaxRanks) - 1}, own == i,
                       rank, row, slot, round);
        first = next;
        row = next_row;
    }
    if (lane == 0) {
        barrier_wait(&shared.ring.empty[slot], ~round & 1);
        shared.ring.info[slot].token = -1;
        barrier_arrive(&shared.ring.full[slot]);
    }
}

// Warp 1. Lanes take (token, k) pairs of this block's tokens.
__device__ inline void sum_weights(const CombineParams& p, const CombineShared& shared) {
    int num_mine = (p.num_tokens - puller(p) + num_pullers(p) - 1) / num_pullers(p);
    for (int i = threadIdx.x % 32; i < num_mine * p.topk; i += 32) {
        int t = puller(p) + i / p.topk * num_pullers(p), k = i % p.topk;
        auto rows = at<const int32_t>(p.token_rows) + static_cast<size_t>(t) * p.group.num_ranks;
        float sum = shared.peers.sum_weights(rows, p.group.num_ranks, k);
        at<float>(p.out_weights)[static_cast<size_t>(t) * p.topk + k] = sum;
    }
}

template <class Wire>
__device__ __forceinline__ void combine(const CombineParams& p) {
    uint8_t* slots = dynamic_shared();
    __shared__ CombineShared shared;
    __shared__ HeaderTable table;
    LocalState* state = state_of(p.group);
    uint32_t epoch = epoch_after(state->epoch);
    OneNode node{p.group, state->masked};
    Consumers consumers{kServiceWarps * 32};
    init_slots(shared.ring, p.num_slots, consumers);
    if (threadIdx.x < kStageWarps * kStageDepth) {
        barrier_init(&shared.stage[threadIdx.x / kStageDepth].loaded[threadIdx.x % kStageDepth], 1);
        barrier_init_fence();
    }
    if (blockIdx.x == 0) announce_combine<Wire>(p, node, epoch, table);
    bool ok = judge_combine(p, node, epoch, table, shared);
    int warp = threadIdx.x / 32;
    bool stages = puller(p) < 0;
    if (ok && stages) {
        if (warp < kStageWarps && threadIdx.x % 32 == 0)
            stage_rows(p, epoch, shared.pushes ? shared.room : nullptr, slots + warp * kStageDepth * p.chunk_bytes,
                       shared.stage[warp]);
        __syncthreads();  // from here on these stages are slots
    }
    if (ok) {
        if (warp == 0) {
            fence_async_proxy();  // rows that peers wrote by ordinary stores, now loaded by the copy engine
            load_chunks<Wire>(p, node, shared, slots, epoch);
        } else if (warp == 1) {
            if (!stages && p.topk > 0 && p.out_weights) sum_weights(p, shared);
        } else {
            sum_chunks<Wire>(p, shared.ring, slots, p.num_slots, consumers, TokenSink<Wire>{p});
        }
    }
    if (arrive_last(&state->exit_arrivals)) finish_call(node, epoch, ok);
}

}  // namespace deepep::normal
