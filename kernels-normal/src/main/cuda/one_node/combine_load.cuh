// The loading warp of a combine on one node: which rows of which token come next, and into which slots of shared
// memory.
#pragma once

#include "../shared/combine_batches.cuh"
#include "../shared/combine_peers.cuh"
#include "combine_stage.cuh"
#include "deepep/bulk_copy.cuh"

namespace deepep::normal {

struct CombineShared {
    BatchRing ring;
    PeerRows peers;
    int32_t first_staged[kMaxRanks];  // this rank's first row at a peer that stages; -1: the peer's rows are there
    int32_t room[kMaxRanks];          // where each peer takes the rows of this rank, in rows of its region
    bool pushes;                      // all ranks do
    StageShared stage[kStageWarps];
};

// A block among those that pull from the start; less than 0 for those that stage first.
__device__ __forceinline__ int puller(const CombineParams& p) { return blockIdx.x - p.num_stage_blocks; }
__device__ __forceinline__ int num_pullers(const CombineParams& p) { return gridDim.x - p.num_stage_blocks; }

// Tokens that a block takes at a time: a few, because asking for them takes longer than loading one; one where blocks
// would end far apart.
constexpr int kTokensPerTicket = kIsWide ? 1 : 32 / kMaxRanks;
constexpr int kLastTickets = 4;  // of a block, which are for one token each

struct Tokens {
    int first, count;
};

// Tickets are handed out to the blocks in their order, because SMs do not get equal shares of the links; each block
// begins with one of its own.
struct Tickets {
    int num_large;  // for kTokensPerTicket tokens each

    __device__ explicit Tickets(const CombineParams& p)
        : num_large(max(0, p.num_tokens - kLastTickets * num_pullers(p)) / kTokensPerTicket) {}
    __device__ Tokens tokens(int ticket) const {
        if (ticket < num_large) return {ticket * kTokensPerTicket, kTokensPerTicket};
        return {num_large * kTokensPerTicket + (ticket - num_large), 1};
    }
};

// Row of token t at `rank` as the dispatch left it, or -1.
__device__ __forceinline__ int32_t token_row(const CombineParams& p, int t, int rank) {
    if (rank >= p.group.num_ranks || t >= p.num_tokens) return -1;
    return at<const int32_t>(p.token_rows)[static_cast<size_t>(t) * p.group.num_ranks + rank];
}

// Warp 0. Lane l stands for rank l % 8 and for token l / 8 of those at hand.
template <class Wire>
__device__ inline void load_chunks(const CombineParams& p, const OneNode& node, CombineShared& shared, uint8_t* slots,
                                   uint32_t epoch) {
    int lane = threadIdx.x % 32, rank = lane % kMaxRanks, own = lane / kMaxRanks;
    int32_t first_staged = rank < p.group.num_ranks ? shared.first_staged[rank] : -1;
    bool waits = __any_sync(~0u, first_staged >= 0);
    BatchWriter<Wire> writer(p, shared.ring, slots, p.num_slots, waits && shared.pushes);
    Tickets tickets(p);
    uint32_t* cursor = &state_of(p.group)->cursor;
    uint32_t ticket = 0;
    auto draw = [&] {
        if (lane == 0) ticket = add_relaxed_gpu(cursor, 1);
    };
    auto drawn = [&] { return tickets.tokens(num_pullers(p) + __shfl_sync(~0u, ticket, 0)); };
    auto row_of = [&](Tokens tokens) { return own < tokens.count ? token_row(p, tokens.first + own, rank) : -1; };
    draw();
    Tokens tokens = tickets.tokens(puller(p));
    if (puller(p) < 0) tokens = drawn(), draw();
    int32_t row = row_of(tokens);
    while (tokens.first < p.num_tokens) {
        Tokens next = drawn();
        draw();
        int32_t next_row = row_of(next);  // looked at in the next turn
        row = checked_row(p.group, shared.peers, epoch, tokens.first + own, rank, row);
        if (waits) {
            bool staged = row < 0 || first_staged < 0 || await_staged(p, node, epoch, rank, first_staged, row);
            fence_async_proxy();  // the flag was an ordinary load, the rows are the copy engine's
            // After a fault nobody waits again; what is summed is void.
            waits = __all_sync(~0u, staged);
        }
        bool has_row = row >= 0, has_token = own < tokens.count && tokens.first + own < p.num_tokens;
        constexpr uint32_t kRanks = (1u << kMaxRanks % 32) - 1;
        uint32_t mates = __ballot_sync(~0u, has_row) & kRanks << own * kMaxRanks;
        LaneRow mine{has_token && (has_row || (mates == 0 && rank == 0)), has_row, mates, tokens.first + own, nullptr};
        const uint8_t* from = has_row ? peer_chunk(shared.peers, rank, row, 0) : nullptr;
        for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
            mine.from = from + chunk * p.chunk_bytes;
            writer.load(mine, chunk, false, [](uint32_t, uint32_t) {});
        }
        tokens = next;
        row = next_row;
    }
    writer.finish();
}

// Warp 0, in a large node, one token at a time: in round r lane l stands for rank 32 * r + l.
template <class Wire>
__device__ inline void load_many_chunks(const CombineParams& p, CombineShared& shared, uint8_t* slots,
                                        uint32_t epoch) {
    int lane = threadIdx.x % 32;
    BatchWriter<Wire> writer(p, shared.ring, slots, p.num_slots, false);
    uint32_t* cursor = &state_of(p.group)->cursor;
    for (int t = puller(p); t < p.num_tokens;) {
        uint32_t ticket = lane == 0 ? add_relaxed_gpu(cursor, 1) : 0;  // asked for early, used for the next token
        int32_t row[kRounds];
        uint32_t mates[kRounds];
        int last = -1;
#pragma unroll
        for (int r = 0; r < kRounds; ++r) {
            int rank = r * 32 + lane;
            row[r] = checked_row(p.group, shared.peers, epoch, t, rank, token_row(p, t, rank));
            mates[r] = __ballot_sync(~0u, row[r] >= 0);
            if (mates[r] != 0) last = r;
        }
        for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
#pragma unroll
            for (int r = 0; r < kRounds; ++r) {
                if (mates[r] == 0) continue;
                bool mine = row[r] >= 0;
                const uint8_t* from = mine ? peer_chunk(shared.peers, r * 32 + lane, row[r], 0) : nullptr;
                writer.load({mine, mine, mates[r], t, from + chunk * p.chunk_bytes}, chunk, r < last,
                            [](uint32_t, uint32_t) {});
            }
            if (last < 0) writer.mark(t, chunk);
        }
        t = num_pullers(p) + __shfl_sync(~0u, ticket, 0);
    }
    writer.finish();
}

}  // namespace deepep::normal
