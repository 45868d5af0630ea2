// Normal-mode combine on one node: every rank pulls the rows of its tokens from the peers and sums them.
//
// Each rank launches it once per call. The header says where a rank's rows lie (its own heap or peer-visible memory);
// having read every header, a rank pulls chunks of rows into shared memory, sums them in fp32 in the order of the
// ranks, adds the biases in order and rounds once to bf16. Weights are summed in the same order. The closing flags say
// that x may be overwritten.
//
// Rows that peers cannot read (stage_x) are brought to them, or to x, by the first num_stage_blocks blocks of the
// launch, a batch at a time: see combine_stage.cuh. Then these blocks sum with the others what is left. In large nodes
// (kIsWide) an earlier launch brings such rows, and none is staged.
//
// Rows that travel as fp8 are in the heap before (by normal_cast.cu, if not written there): none is staged.
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
#include "combine_load.cuh"
#include "combine_stage.cuh"
#include "deepep/block.cuh"
#include "deepep/bulk_copy.cuh"

namespace deepep::normal {

// Word `lane` of what this rank says of a combine. One warp.
template <class Wire>
__device__ inline int32_t combine_word(const CombineParams& p) {
    uint32_t masked = state_of(p.group)->masked;
    int lane = threadIdx.x % 32;
    int32_t value = 0;
    switch (lane) {
        case kOp: value = kOpCombine; break;
        case kHidden: value = p.hidden; break;
        case kTopk: value = p.topk; break;
        case kMasked: value = masked; break;
        default: value = offer_word(p, lane);
    }
    if (Wire::kScaled && lane == kNumScales) value = p.hidden / kFp8ScaleChannels;
    if (!kIsWide) {
        int reader = lane - kHeaderCounts;
        int32_t room = offer_room(p, reader);
        if (reader >= 0) value = room;
    }
    return handle_word(p.handle_epoch, lane, value, masked);
}

// First thing in the block that announces, because it takes microseconds: the words, and in the warps that send them a
// fence, for x, written by earlier launches, comes before the words that offer it. All threads.
template <class Wire>
__device__ inline void prepare_combine_header(const CombineParams& p, HeaderTable& table) {
    if (threadIdx.x < 32) table.mine[threadIdx.x] = combine_word<Wire>(p);
    if (threadIdx.x / 32 < p.group.num_ranks) fence_sys();
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
    if (kIsWide && threadIdx.x < g.num_ranks && arrived) {
        int d = threadIdx.x;
        shared.peers.learn(g, d, [&](int word) { return table.of[d][word]; });
    }
    if (!kIsWide && threadIdx.x < g.num_ranks && arrived) {
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
    await_previous_launch();
    uint8_t* slots = dynamic_shared();
    __shared__ CombineShared shared;
    __shared__ HeaderTable table;
    LocalState* state = state_of(p.group);
    uint32_t epoch = epoch_after(state->epoch);
    OneNode node{p.group, MaskedRanks::of(p.group)};
    if (blockIdx.x == 0) prepare_combine_header<Wire>(p, table);
    Consumers consumers{kServiceWarps * 32};
    init_batches(shared.ring, consumers);
    if (threadIdx.x < kStageWarps * kStageDepth) {
        barrier_init(&shared.stage[threadIdx.x / kStageDepth].loaded[threadIdx.x % kStageDepth], 1);
        barrier_init_fence();
    }
    if (blockIdx.x == 0) {
        __syncthreads();
        send_header(node, epoch, table, nullptr, 0);
    }
    bool ok = judge_combine(p, node, epoch, table, shared);
    int warp = threadIdx.x / 32;
    bool stages = !kIsWide && puller(p) < 0;
    if (ok && stages) {
        if (warp < kStageWarps && threadIdx.x % 32 == 0)
            stage_rows(p, epoch, shared.pushes ? shared.room : nullptr, slots + warp * kStageDepth * p.chunk_bytes,
                       shared.stage[warp]);
        __syncthreads();  // from here on these stages are slots
    }
    if (ok) {
        if (warp == 0) {
            fence_async_proxy();  // rows that peers wrote by ordinary stores, now loaded by the copy engine
            if constexpr (kIsWide)
                load_many_chunks<Wire>(p, shared, slots, epoch);
            else
                load_chunks<Wire>(p, node, shared, slots, epoch);
        } else if (warp == 1) {
            if (!stages && p.topk > 0 && p.out_weights) sum_weights(p, shared);
        } else {
            sum_chunks<Wire>(p, shared.ring, slots, p.num_slots, consumers, TokenSink<Wire>{p});
        }
    }
    // Found again, the epoch takes no register in the loops above, of which those of large nodes have none to spare.
    if (arrive_last(&state->exit_arrivals)) finish_call(node, kIsWide ? epoch_after(state->epoch) : epoch, ok);
}

}  // namespace deepep::normal
