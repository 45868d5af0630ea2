// Normal-mode combine across nodes, in one launch.
//
// Each rank launches it once per call. Home blocks compute the rank's own tokens: they pull a token's rows from the
// ranks of this node, and take from the rings what each other node has summed. Summing blocks sum for the peers: they
// pull a token's rows from the ranks of this node, round the sum to bf16 and put it, cast where rows are, into the
// owner's ring.
// Order of a sum in fp32: rows of the own node by rank, then nodes in order, then biases; weights in the same order.
//
// How many blocks are home blocks follows from what the two kinds load (CombineRoles). Token t belongs to home block
// t % num_home_blocks of its owner and, on every other node, to the summing block whose number is t modulo theirs.
// Summing blocks go through tokens in order and, for each, through owners in turn; home blocks take tokens in order.
// So the first unfinished token never waits for a later one, whatever rings are full.
//
// Writes: out, out_weights, rings and weights at the peers, the status block. Reads: x and weights of this node's
// ranks, the routing of the dispatch, biases, rings and weights from the peers. The closing flags say that x may be
// overwritten.
//
// Launch: up to 256 blocks, of both kinds, all of them resident together. Threads: 96 + consumers, where consumers
// is a multiple of 32, at least 192 and at least chunk_bytes / 32 (fp8: 16); warp 0 loads, warp 1 tells peers of rows,
// warp 2 of a home block sums weights, that of a summing block puts sums into rings, the others sum rows.
// Dynamic shared memory: num_slots * slot_bytes of the wire, of which summing blocks use the last three slots for
// sums; at rings_offset kRingStateBytes for each cell of rows and channel of a block.
#pragma once

#include "deepep/block.cuh"
#include "internode_load.cuh"
#include "internode_sums.cuh"

namespace deepep::normal {

// What this rank says of a combine. All threads of the leader; x, written by earlier launches, comes before the release
// in announce.
template <class Net, class Wire>
__device__ inline void combine_words(const InternodeCombineParams& params, int32_t* words) {
    const CombineParams& p = params.local;
    if (threadIdx.x < kHeaderWords) {
        int32_t value = 0;
        switch (threadIdx.x) {
            case kOp: value = kOpCombine; break;
            case kHidden: value = p.hidden; break;
            case kTopk: value = p.topk; break;
            case kNumBlocks: value = gridDim.x; break;
            case kNumSlots: value = params.between.num_slots; break;
            default: value = offer_word(p, threadIdx.x);
        }
        if (Wire::kScaled && threadIdx.x == kNumScales) value = p.hidden / kFp8ScaleChannels;
        uint32_t masked = Routes<Net>::word(p.group);
        if (Routes<Net>::kMaskable && threadIdx.x == kMasked) value = masked;
        words[threadIdx.x] = handle_word(p.handle_epoch, threadIdx.x, value, masked);
    }
    __syncthreads();
}

// Out of line: where ranks may be masked, what it keeps would cost the warps that sum their registers.
template <class Net>
static __device__ __noinline__ uint32_t open_combine(const Nodes<Net>& nodes, uint32_t epoch) {
    return open_call(nodes, epoch).code;
}

template <class Net, class Wire>
__device__ inline void internode_combine(const InternodeCombineParams& params) {
    await_previous_launch();
    uint8_t* slots = dynamic_shared();
    InternodeCombineShared& shared = combine_shared();
    const CombineParams& p = params.local;
    const Internode& b = params.between;
    const Group& g = p.group;
    uint32_t epoch = epoch_after(state_of(g)->epoch);
    bool for_owners = !is_home_block(b);
    BlockRings block_rings = combine_rings(b);
    Consumers consumers{kInternodeServiceWarps * 32};
    init_batches(shared.ring, consumers);
    if (threadIdx.x < kSumStages) {
        barrier_init(&shared.sum_full[threadIdx.x], consumers.count());
        barrier_init(&shared.sum_empty[threadIdx.x], 1);
        barrier_init_fence();
    }
    auto rings = rings_of_block<uint8_t>(p);
    int num_rings = for_owners ? Homes<Net>::size(b.network) : Forwarders<Net>::size(b.network);  // of a set
    for (int i = threadIdx.x; i < block_rings.num_sets * num_rings * kRingStateBytes / 4; i += blockDim.x)
        reinterpret_cast<uint32_t*>(rings)[i] = 0;
    for (int i = threadIdx.x; i < sizeof(params) / 4; i += blockDim.x)
        reinterpret_cast<uint32_t*>(&shared.params)[i] = reinterpret_cast<const uint32_t*>(&params)[i];
    if (threadIdx.x == 0) shared.state = 0;
    if (blockIdx.x == 0) {
        __shared__ int32_t words[kHeaderWords];
        combine_words<Net, Wire>(params, words);
        announce<Net>(b, g, epoch, words, nullptr);
        if (threadIdx.x == 0) plan_of(b)->ends_together = Routes<Net>::ends_together(b.network);
        give_verdict(b, epoch, open_combine(Nodes<Net>{g, b}, epoch));
    }
    bool ok = await_verdict(b, g, epoch);
    if (threadIdx.x == 0) shared.goes_on = ok;
    if (ok && threadIdx.x < g.num_ranks) {
        shared.peers.learn(g, threadIdx.x,
                           [&](int word) { return header_word(g, g.first_rank + threadIdx.x, word, epoch); });
        if (threadIdx.x == g.rank &&
            p.stage_x) {  // the others' rows were brought to x, this rank's are where they were
            shared.peers.x_base[g.rank] = p.stage_x;
            shared.peers.x_stride[g.rank] = static_cast<int32_t>(p.stage_x_stride);
        }
    }
    __syncthreads();
    auto heads = reinterpret_cast<RingHead*>(rings);
    uint32_t num_slots = num_slots_of_block(params);
    uint8_t* stages = slots + num_slots * p.slot_bytes;
    int warp = threadIdx.x / 32;
    if (ok && warp == 0) {
        fence_async_proxy();  // rows that peers wrote by ordinary stores, now loaded by the copy engine
        if (for_owners)
            load_for_homes<Net, Wire>(epoch);
        else
            load_own_tokens<Net, Wire>(epoch);
    } else if (ok && warp == 1) {
        if (for_owners)
            tell_peers<Homes<Net>, true>(b, epoch, block_rings, rings, &shared.state, 1);
        else
            tell_peers<Forwarders<Net>, false>(b, epoch, block_rings, rings, &shared.state, 1);
    } else if (ok && warp == 2) {
        if (for_owners)
            put_sums<Net, Wire>(params, epoch, shared, stages, reinterpret_cast<RingTail*>(rings));
        else if (p.topk > 0 && p.out_weights)
            combine_weights<Net>(params, epoch, shared);
    } else if (ok && for_owners) {
        sum_chunks<Wire>(p, shared.ring, slots, num_slots, consumers, RingSink<Wire>{p, shared, stages, consumers});
    } else if (ok) {
        sum_chunks<Wire>(p, shared.ring, slots, num_slots, consumers, OwnerSink<Wire>(p, shared, heads, consumers));
    }
    // Found again, these take no registers in the loops above.
    LocalState* state = state_of(g);
    if (arrive_last(&state->exit_arrivals))
        finish_everywhere(Nodes<Net>{g, b}, epoch_after(state->epoch), shared.goes_on);
}

}  // namespace deepep::normal
