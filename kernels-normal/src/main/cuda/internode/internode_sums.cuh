// Combine across nodes: what leaves a node, sums into rings and weights.
#pragma once

#include "internode_slots.cuh"

namespace deepep::normal {

// Warp 2 of a summing block: sums into the owners' rings, in the order in which they come.
template <class Net, class Wire>
__device__ inline void put_sums(const InternodeCombineParams& params, uint32_t epoch, InternodeCombineShared& shared,
                                const uint8_t* stages, RingTail* tails) {
    const CombineParams& p = params.local;
    const Internode& b = params.between;
    using To = Homes<Net>;
    BlockRings rings = combine_rings(b);
    int size = To::size(b.network);
    int pending[kPutsPending];  // of the latest stores, the newest first: the ring, if a row ends with it
    bool ok = true;
#pragma unroll
    for (int j = 0; j < kPutsPending; ++j) pending[j] = -1;
    if (threadIdx.x % 32 != 0) return;
    auto note_all = [&] {
        bulk_wait_written();
        for (int r = 0; r < rings.num_sets * size; ++r) note(&tails[r].done, tails[r].put);
#pragma unroll
        for (int j = 0; j < kPutsPending; ++j) pending[j] = -1;
    };
    for (uint32_t i = 0;; ++i) {
        uint32_t stage = i % kSumStages;
        barrier_wait(&shared.sum_full[stage], i / kSumStages & 1);  // acquire; pairs with RingSink
        int ring = shared.sum_ring[stage], chunk = shared.sum_chunk[stage];
        if (ring < 0) break;
        RingTail& tail = tails[ring];
        auto place = [=] { return ring % size; };
        auto channel = [=] { return rings.channel(ring / size); };
        if (ok && chunk == 0 && !has_room(b, tail)) {
            note_all();
            ok = await_room<To>(Nodes<Net>{p.group, b}, epoch, channel(), place(), tail, &shared.state);
        }
        if (ok) Wire::store(p, next_slot<To>(b, channel(), place(), tail), stages + stage * p.slot_bytes, chunk);
        bulk_commit();
        bulk_wait_read<1>();
        if (i > 0) barrier_arrive(&shared.sum_empty[(i - 1) % kSumStages]);  // release; pairs with RingSink
        bulk_wait_written<kPutsPending>();
        int written = pending[kPutsPending - 1];
        if (written >= 0) note(&tails[written].done, tails[written].done + 1);
#pragma unroll
        for (int j = kPutsPending - 1; j > 0; --j) pending[j] = pending[j - 1];
        pending[0] = ok && chunk == p.num_chunks - 1 ? ring : -1;
        if (pending[0] >= 0) advance(b, tail);
    }
    if (ok) note_all();
    note_more(&shared.state, kFinished);
}

constexpr int kWeightBatch = 4;

// Warp 2 of a home block: weights of a share of the homes' tokens to them, then weights of a share of its own tokens.
template <class Net>
__device__ inline void combine_weights(const InternodeCombineParams& params, uint32_t epoch,
                                       const InternodeCombineShared& shared) {
    const CombineParams& p = params.local;
    const Internode& b = params.between;
    const Network& net = b.network;
    int lane = threadIdx.x % 32, num_ranks = p.group.num_ranks;
    struct Share {
        int begin, end;
    };
    auto share = [&](int num_tokens) {
        int each = (num_tokens + b.num_home_blocks - 1) / b.num_home_blocks;
        int begin = min(num_tokens, static_cast<int>(blockIdx.x) * each);
        return Share{begin, min(num_tokens, begin + each)};
    };
    // Sums of (token, k) j, j + 32, ... over this node, several asked for at once.
    auto sum_batch = [&](NodeRows* rows, int j0, int end, float* sum) {
#pragma unroll
        for (int i = 0; i < kWeightBatch; ++i) {
            int j = min(j0 + i * 32, end - 1);
            sum[i] = shared.peers.sum_weights(rows_of_token(b, rows, j / p.topk)->row, num_ranks, j % p.topk);
        }
    };
    using To = Homes<Net>;
    for (int i = 1; i < To::end_turn(net); ++i) {
        int place = (net.node + i) % To::size(net);
        // A dispatch that did not look at masks has counted this rank's tokens in its own cell, and left spare ones.
        if (!To::is_used(net, place)) continue;
        Share tokens = share(at<const int32_t>(b.source_tokens)[place]);
        if (tokens.begin == tokens.end) continue;
        auto sums = at<float>(To::outgoing(net, b.records, place));
        for (int j = tokens.begin * p.topk + lane; j < tokens.end * p.topk; j += 32 * kWeightBatch) {
            float sum[kWeightBatch];
            sum_batch(node_rows(b, b.forward_rows, b.max_tokens, place, 0), j, tokens.end * p.topk, sum);
#pragma unroll
            for (int v = 0; v < kWeightBatch; ++v)
                if (j + v * 32 < tokens.end * p.topk) sums[j + v * 32] = sum[v];
        }
        fence_sys();
        __syncwarp();
        // release; pairs with the acquire below
        To::put_signal(net, lane == 0, place, b.records, static_cast<uint64_t>(tokens.begin) * p.topk * sizeof(float),
                       static_cast<uint64_t>(tokens.end - tokens.begin) * p.topk * sizeof(float), b.record_flags,
                       blockIdx.x * sizeof(uint64_t), epoch);
    }
    Share tokens = share(p.num_tokens);
    bool ok = true;
    for (int n = lane; n < net.num_nodes && tokens.begin < tokens.end; n += 32)
        if (Forwarders<Net>::is_used(net, n))
            ok = ok && await_record<Forwarders<Net>>(Nodes<Net>{p.group, b}, epoch, n, blockIdx.x);
    if (!__all_sync(~0u, ok)) return;
    __syncwarp();  // each lane has acquired the sums of some nodes, all lanes read those of every node
    for (int j = tokens.begin * p.topk + lane; j < tokens.end * p.topk; j += 32 * kWeightBatch) {
        float sum[kWeightBatch];
        sum_batch(node_rows(b, b.own_rows, p.num_tokens, net.node, 0), j, tokens.end * p.topk, sum);
        for (int n = 0; n < net.num_nodes; ++n) {
            if (!Forwarders<Net>::is_used(net, n)) continue;
#pragma unroll
            for (int v = 0; v < kWeightBatch; ++v) {
                int i = min(j + v * 32, tokens.end * p.topk - 1);
                bool comes = load_rows(b, node_rows(b, b.own_rows, p.num_tokens, n, i / p.topk)).go_anywhere();
                sum[v] += comes ? at<const float>(incoming(net, b.records, n))[i] : 0;
            }
        }
#pragma unroll
        for (int v = 0; v < kWeightBatch; ++v)
            if (j + v * 32 < tokens.end * p.topk) at<float>(p.out_weights)[j + v * 32] = sum[v];
    }
}

}  // namespace deepep::normal
