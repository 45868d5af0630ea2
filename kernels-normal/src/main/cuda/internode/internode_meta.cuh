// Second phase of a dispatch across nodes: rows are numbered, and everything about a token but its row goes to the
// ranks that receive it: directly on this node, by way of the peers on the others.
//
// A record is what the peer on a node learns of a token: NodeRows on its node, i32 experts [topk], f32 weights [topk].
// It forwards them as it forwards rows, and keeps the NodeRows for combine. Records lie at the index of the token;
// those of tokens that do not go to the node hold no more than their NodeRows. Block b of a rank sends the records of
// its tokens with one flag, and forwards those of every peer's block b.
#pragma once

#include "../shared/dispatch_send.cuh"
#include "deepep/block.cuh"
#include "internode_counts.cuh"

namespace deepep::normal {

__device__ __forceinline__ const int32_t* incoming_record(const Internode& b, int place, int t) {
    return at<const int32_t>(incoming(b.network, b.records, place), static_cast<uint64_t>(t) * b.record_bytes);
}

// The selections of a peer, from its records.
struct PeerSelections {
    uint64_t records;
    int record_bytes;
    int topk;
    int head = kMaxRanks;

    __device__ const int32_t* of(int t) const {
        return at<const int32_t>(records, static_cast<uint64_t>(t) * record_bytes) + head;
    }
    __device__ int64_t expert(int t, int k) const { return of(t)[k]; }
    __device__ float weight(int t, int k) const { return __int_as_float(of(t)[topk + k]); }
};

// Numbers the rows of tokens first .. first + 31 on a small node: a lane for each rank of some tokens. bases: of the
// block's rows at all nodes. Also into records, if the node is remote. Bit i: token first + i goes to the node.
__device__ __forceinline__ uint32_t number_few_rows(const InternodeDispatchParams& params, int first, int end, int node,
                                                    const int32_t* bases, bool remote, uint64_t records) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    int lane = threadIdx.x % 32, place = lane % kMaxRanks;
    constexpr int kTokensAtOnce = 32 / kMaxRanks;
    int32_t order[kMaxRanks];
#pragma unroll
    for (int i = 0; i < kMaxRanks; ++i) {
        int t = first + i * kTokensAtOnce + lane / kMaxRanks;
        order[i] = t < end ? node_rows(b, p.token_order, p.num_tokens, node, t)->row[place] : -1;
    }
    int32_t base = bases[node * kMaxRanks + place];
    uint32_t goes = 0;
#pragma unroll
    for (int i = 0; i < kMaxRanks; ++i) {
        int t = first + i * kTokensAtOnce + lane / kMaxRanks;
        int32_t row = order[i] >= 0 ? order[i] + base : -1;
        if (t < end) {
            node_rows(b, b.own_rows, p.num_tokens, node, t)->row[place] = row;
            if (remote) at<int32_t>(records, static_cast<uint64_t>(t) * b.record_bytes)[place] = row;
        }
        uint32_t receivers = __ballot_sync(~0u, row >= 0);
#pragma unroll
        for (int j = 0; j < kTokensAtOnce; ++j)
            goes |= static_cast<uint32_t>((receivers >> (j * kMaxRanks) & 0xff) != 0) << (i * kTokensAtOnce + j);
    }
    return goes;
}

// The same on a large node, one token at a time.
__device__ __forceinline__ uint32_t number_many_rows(const InternodeDispatchParams& params, int first, int end,
                                                     int node, const int32_t* bases, bool remote, uint64_t records) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    uint32_t goes = 0;
    for (int t = first; t < min(first + 32, end); ++t) {
        const NodeRows* order = node_rows(b, p.token_order, p.num_tokens, node, t);
        NodeRows* own = node_rows(b, b.own_rows, p.num_tokens, node, t);
        auto record = at<int32_t>(records, static_cast<uint64_t>(t) * b.record_bytes);
        bool received = false;
        for (int place = threadIdx.x % 32; place < b.node_places; place += 32) {
            int32_t row = order->row[place] >= 0 ? order->row[place] + bases[node * b.node_places + place] : -1;
            own->row[place] = row;
            if (remote) record[place] = row;
            received |= row >= 0;
        }
        goes |= static_cast<uint32_t>(__any_sync(~0u, received)) << (t - first);
    }
    return goes;
}

// Numbers the rows of tokens first .. first + 31 on one node, and composes their records if it has a forwarder. One
// warp.
template <class Net>
__device__ inline void number_rows(const InternodeDispatchParams& params, int first, int end, int node) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    int lane = threadIdx.x % 32;
    bool remote = Forwarders<Net>::is_used(b.network, node);
    const int32_t* bases = at<const int32_t>(b.block_bases) + blockIdx.x * b.network.num_nodes * node_places(b);
    uint64_t records = remote ? Forwarders<Net>::outgoing(b.network, b.records, node) : 0;
    uint32_t goes;
    if constexpr (kIsWide)
        goes = number_many_rows(params, first, end, node, bases, remote, records);
    else
        goes = number_few_rows(params, first, end, node, bases, remote, records);
    if (!remote) return;
    for (int j0 = lane; j0 < 32 * p.topk; j0 += 32 * kSelectionBatch) {
        int64_t expert[kSelectionBatch];
        int32_t weight[kSelectionBatch];
#pragma unroll
        for (int i = 0; i < kSelectionBatch; ++i) {
            int j = j0 + i * 32;
            bool sent = j < 32 * p.topk && (goes >> (j / p.topk) & 1);
            size_t from = static_cast<size_t>(first) * p.topk + j;
            expert[i] = sent ? at<const int64_t>(p.topk_idx)[from] : -1;
            weight[i] = sent && p.topk_weights ? at<const int32_t>(p.topk_weights)[from] : 0;
        }
#pragma unroll
        for (int i = 0; i < kSelectionBatch; ++i) {
            int j = j0 + i * 32, k = j % p.topk;
            if (j >= 32 * p.topk || !(goes >> (j / p.topk) & 1)) continue;
            uint64_t record = static_cast<uint64_t>(first + j / p.topk) * b.record_bytes;
            auto to = at<int32_t>(records, record) + node_places(b);
            to[k] = static_cast<int32_t>(expert[i]);
            if (p.topk_weights) to[p.topk + k] = weight[i];
        }
    }
}

// Metadata of tokens first .. first + 31 to the ranks of this node. One warp.
template <class Selections>
__device__ inline void spread_run(const InternodeDispatchParams& params, const NodeRows* rows, int stride_bytes,
                                  int first, int end, uint8_t* list, const Selections& selections) {
    const DispatchParams& p = params.local;
    int t = first + threadIdx.x % 32, num_ranks = p.group.num_ranks;
    for (int i = 0; i < num_ranks; ++i) {
        int dest = (p.group.rank + 1 + i) % num_ranks;
        auto mine = reinterpret_cast<const NodeRows*>(reinterpret_cast<const uint8_t*>(rows) +
                                                      static_cast<size_t>(t) * stride_bytes);
        int row = t < end ? mine->row[dest] : -1;
        send_run(p, dest, p.num_experts / params.between.num_ranks, first, row, list, selections);
    }
}

// The metadata of the block's own tokens, other nodes first. All meta warps of the block.
template <class Net>
__device__ inline void send_records(const InternodeDispatchParams& params, uint32_t epoch, uint8_t* list, int meta_warp,
                                    int num_meta_warps) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    const Network& net = b.network;
    TokenRange tokens = block_tokens(p.num_tokens);
    for (int first = tokens.begin + meta_warp * 32; first < tokens.end; first += num_meta_warps * 32)
        for (int i = 1; i <= net.num_nodes; ++i)
            number_rows<Net>(params, first, tokens.end, (net.node + i) % net.num_nodes);
    fence_sys();
    team_barrier(1, num_meta_warps * 32);
    if (meta_warp == 0)
        for (int n0 = 0; n0 < net.num_nodes; n0 += 32) {
            int node = n0 + threadIdx.x % 32, num_tokens = tokens.end - tokens.begin;
            bool sends = node < net.num_nodes && Forwarders<Net>::is_used(net, node);
            // release; pairs with the acquire in await_record
            Forwarders<Net>::put_signal(net, sends && num_tokens > 0, node, b.records,
                                        static_cast<uint64_t>(tokens.begin) * b.record_bytes,
                                        static_cast<uint64_t>(num_tokens) * b.record_bytes, b.record_flags,
                                        blockIdx.x * sizeof(uint64_t), epoch);
        }
    for (int first = tokens.begin + meta_warp * 32; first < tokens.end; first += num_meta_warps * 32)
        spread_run(params, node_rows(b, b.own_rows, p.num_tokens, net.node, 0), node_rows_bytes(b), first, tokens.end,
                   list, own_selections(p));
}

// The metadata of the homes' tokens to the ranks of this node; ends early after a fault. All meta warps of the block.
template <class Net>
__device__ inline void forward_records(const InternodeDispatchParams& params, uint32_t epoch, uint8_t* list,
                                       int meta_warp, int num_meta_warps) {
    const Internode& b = params.between;
    const Network& net = b.network;
    Nodes<Net> nodes{params.local.group, b};
    int lane = threadIdx.x % 32;
    using From = Homes<Net>;
    for (int i = 1; i < From::end_turn(net); ++i) {
        int place = (net.node + From::size(net) - i) % From::size(net);
        TokenRange tokens = block_tokens(at<const int32_t>(b.source_tokens)[place]);
        if (tokens.begin + meta_warp * 32 >= tokens.end) continue;
        // A lane alone may have given up just before the records came: all go on, or none.
        if (!__all_sync(~0u, await_record<From>(nodes, epoch, place, blockIdx.x))) return;
        uint64_t records = incoming(net, b.records, place);
        PeerSelections selections{records, b.record_bytes, params.local.topk, node_places(b)};
        for (int first = tokens.begin + meta_warp * 32; first < tokens.end; first += num_meta_warps * 32) {
            for (int j = lane; j < 32 * node_places(b); j += 32) {
                int t = first + j / node_places(b), row = j % node_places(b);
                if (t < tokens.end)
                    node_rows(b, b.forward_rows, b.max_tokens, place, t)->row[row] = incoming_record(b, place, t)[row];
            }
            spread_run(params, at<const NodeRows>(records), b.record_bytes, first, tokens.end, list, selections);
        }
    }
}

}  // namespace deepep::normal
