// Combine across nodes: the warps that ask for rows, of a rank's own tokens and of its peers'.
#pragma once

#include "internode_slots.cuh"

namespace deepep::normal {

constexpr int kPartLanes = 32 - kMaxRanks;  // nodes looked at together

// The node whose part of a token lane 8 and up stand for, from n0 on; the own node, of which there is none, for others.
__device__ __forceinline__ int part_node(const Network& net, int n0) {
    int lane = threadIdx.x % 32, node = n0 + lane - kMaxRanks;
    return lane >= kMaxRanks && node < net.num_nodes ? node : net.node;
}

// What says whether this lane has a row of the own token t: lanes 0 .. 7 (with n0 = 0) the rows of this node's ranks,
// the others parts of nodes.
__device__ __forceinline__ LoadedRows lane_rows(const InternodeCombineParams& params, int t, int n0) {
    const CombineParams& p = params.local;
    const Network& net = params.between.network;
    int lane = threadIdx.x % 32, node = part_node(net, n0);
    LoadedRows rows = no_rows();
    if (t >= p.num_tokens) return rows;
    const NodeRows* all = node_rows(params.between.own_rows, p.num_tokens, node, t);
    if (node != net.node) return load_rows(all);
    if (lane < p.group.num_ranks && n0 == 0) rows.low.x = all->row[lane];
    return rows;
}

// Until the lanes that stand for a part have the next row of its ring. All lanes; each loads what it has waited for.
template <class Net>
__device__ inline bool await_parts(const Nodes<Net>& nodes, uint32_t epoch, int channel, bool part, int node,
                                   RingHead& head) {
    const Internode& b = nodes.b;
    bool arrived = true, looks = part && head.put == head.taken;
    if (!__any_sync(~0u, looks)) return true;
    if (looks) {
        auto word = at<const uint64_t>(incoming(b.network, b.tails, node)) + channel;
        // acquire; pairs with tell_peers
        head.put = await_count<Forwarders<Net>>(nodes, epoch, node, word, head.taken);
        arrived = head.put != head.taken;
    }
    arrived = __all_sync(~0u, arrived);
    fence_async_proxy();  // the counts were read by ordinary loads, the rows will be by the copy engine
    return arrived;
}

// Warp 0 of a home block: rows of the block's own tokens, those of the node and then the parts of the others.
template <class Net, class Wire>
struct OwnLoader {
    const InternodeCombineParams& params;
    SlotWriter<Wire>& writer;
    RingHead* heads;
    uint32_t epoch;

    // This lane's row of token t, or -1, if it stands for a rank of this node.
    __device__ int32_t home_row(const LoadedRows& rows, int t) const {
        int lane = threadIdx.x % 32;
        if (lane >= kMaxRanks || rows.low.x < 0) return -1;
        return checked_row(params.local.group, writer.shared.peers, epoch, t, lane, rows.low.x);
    }

    // One chunk of token t: the rows of lanes in `first`, then parts of the nodes that these lanes do not stand for,
    // from the rings of a set. False after a fault.
    __device__ bool load_chunk(int t, int chunk, uint32_t first, int32_t row, int num_rows, int channel,
                               int first_ring) {
        const CombineParams& p = params.local;
        const Internode& b = params.between;
        constexpr uint32_t kPartMask = ~0u << kMaxRanks;
        int lane = threadIdx.x % 32, loaded = 0;
        uint32_t begin = chunk * p.chunk_bytes, size = Wire::num_bytes(p, chunk);
        bool ok = true, ends = chunk == p.num_chunks - 1;
        SlotInfo info{t, static_cast<int16_t>(chunk), static_cast<int16_t>(num_rows)};
        if (num_rows == 0) writer.mark(t, chunk);
        for (int n0 = 0; n0 < b.network.num_nodes; n0 += kPartLanes) {
            uint32_t lanes = n0 == 0 ? first : __ballot_sync(~0u, lane_rows(params, t, n0).go_anywhere());
            int node = part_node(b.network, n0), ring = first_ring + node;
            bool part = lanes & kPartMask & 1u << lane;
            ok = chunk != 0 || await_parts(Nodes<Net>{p.group, b}, epoch, channel, part, node, heads[ring]);
            if (!ok) break;
            const uint8_t* from = nullptr;
            if (part)
                from = at<const uint8_t>(incoming(b.network, b.slots, node) + begin,
                                         slot_offset(b, channel, heads[ring].taken));
            else if (row >= 0)
                from = peer_chunk(writer.shared, lane, row, begin);
            writer.load(lanes, from, size, loaded == 0, info, part && ends ? ring : -1);
            loaded += __popc(lanes);
            if (part && ends) ++heads[ring].taken;
        }
        // The consumers have been promised num_rows, if anything.
        for (; !ok && loaded > 0 && loaded < num_rows; ++loaded) writer.mark(t, chunk);
        return ok;
    }

    __device__ void run() {
        const CombineParams& p = params.local;
        const Internode& b = params.between;
        BlockRings rings = combine_rings(b);
        LoadedRows next_rows = lane_rows(params, rings.first, 0);
        bool ok = true;
        int set = 0;
        for (int t = rings.first; t < p.num_tokens && ok; t += rings.step) {
            LoadedRows rows = next_rows;
            next_rows = lane_rows(params, t + rings.step, 0);
            int32_t row = home_row(rows, t);
            uint32_t first = __ballot_sync(~0u, threadIdx.x % 32 < kMaxRanks ? row >= 0 : rows.go_anywhere());
            int num_rows = __popc(first);
            for (int n0 = kPartLanes; n0 < b.network.num_nodes; n0 += kPartLanes)
                num_rows += __popc(__ballot_sync(~0u, lane_rows(params, t, n0).go_anywhere()));
            for (int chunk = 0; chunk < p.num_chunks && ok; ++chunk)
                ok = load_chunk(t, chunk, first, row, num_rows, rings.channel(set), set * b.network.num_nodes);
            if (++set == rings.num_sets) set = 0;
        }
        writer.mark(-1, 0);
    }
};

// This lane's row of the token t of a home, or -1: four owners at a time, from n0, eight lanes for each.
template <class Net>
__device__ __forceinline__ int32_t owner_row(const InternodeCombineParams& params, int t, int n0) {
    const Group& g = params.local.group;
    const Internode& b = params.between;
    int lane = threadIdx.x % 32, place = n0 + lane / kMaxRanks, rank = lane % kMaxRanks;
    if (place >= Homes<Net>::size(b.network) || !Homes<Net>::is_used(b.network, place) || rank >= g.num_ranks)
        return -1;
    if (t >= at<const int32_t>(b.source_tokens)[place]) return -1;
    return node_rows(b.forward_rows, b.max_tokens, place, t)->row[rank];
}

// Warp 0 of a summing block: rows of its tokens of all homes, by token and then by owner.
template <class Net, class Wire>
__device__ inline void load_for_peers(const InternodeCombineParams& params, uint32_t epoch, SlotWriter<Wire>& writer) {
    const CombineParams& p = params.local;
    const Internode& b = params.between;
    BlockRings rings = combine_rings(b);
    int lane = threadIdx.x % 32, num_homes = Homes<Net>::size(b.network), most = 0, set = 0;
    for (int n = lane; n < num_homes; n += 32)
        if (Homes<Net>::is_used(b.network, n)) most = max(most, at<const int32_t>(b.source_tokens)[n]);
    most = __reduce_max_sync(~0u, most);
    int32_t next_row = owner_row<Net>(params, rings.first, 0);
    for (int t = rings.first, n0 = 0; t < most;) {
        int next_n0 = n0 + 32 / kMaxRanks, next_t = t;
        if (next_n0 >= num_homes) next_n0 = 0, next_t += rings.step;
        int32_t row = next_row;
        if (row >= 0) row = checked_row(p.group, writer.shared.peers, epoch, t, lane % kMaxRanks, row);
        next_row = owner_row<Net>(params, next_t, next_n0);
        uint32_t rows = __ballot_sync(~0u, row >= 0);
        for (int i = 0; i < 32 / kMaxRanks; ++i) {
            uint32_t of_owner = rows & 0xffu << (i * kMaxRanks);
            if (of_owner == 0) continue;
            for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
                SlotInfo info{set * num_homes + n0 + i, static_cast<int16_t>(chunk),
                              static_cast<int16_t>(__popc(of_owner))};
                const uint8_t* from =
                    row >= 0 ? peer_chunk(writer.shared, lane % kMaxRanks, row, chunk * p.chunk_bytes) : nullptr;
                writer.load(of_owner, from, Wire::num_bytes(p, chunk), true, info, -1);
            }
        }
        if (next_t != t && ++set == rings.num_sets) set = 0;
        t = next_t;
        n0 = next_n0;
    }
    writer.mark(-1, 0);
}

}  // namespace deepep::normal
