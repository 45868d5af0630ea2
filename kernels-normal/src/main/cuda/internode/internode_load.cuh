// Combine across nodes: the warps that ask for rows, of a rank's own tokens and of its peers'.
#pragma once

#include "internode_slots.cuh"

namespace deepep::normal {

// The first lanes stand for the ranks of this node, the others for nodes. The ranks of a large node take rounds of all
// lanes, and come before the nodes.
constexpr int kHomeLanes = kIsWide ? 0 : kMaxRanks;
constexpr int kPartLanes = 32 - kHomeLanes;  // nodes looked at together

// The node whose part of a token a lane past kHomeLanes stands for, from n0 on; the own node, of which there is none,
// for others.
__device__ __forceinline__ int part_node(const Network& net, int n0) {
    int lane = threadIdx.x % 32, node = n0 + lane - kHomeLanes;
    return lane >= kHomeLanes && node < net.num_nodes ? node : net.node;
}

// What says whether this lane has a row of the own token t: lanes below kHomeLanes (with n0 = 0) the rows of this
// node's ranks, the others parts of nodes.
__device__ __forceinline__ LoadedRows lane_rows(const InternodeCombineParams& params, int t, int n0) {
    const CombineParams& p = params.local;
    const Network& net = params.between.network;
    int lane = threadIdx.x % 32, node = part_node(net, n0);
    LoadedRows rows = no_rows();
    if (t >= p.num_tokens) return rows;
    const NodeRows* all = node_rows(params.between, params.between.own_rows, p.num_tokens, node, t);
    if (node != net.node) return load_rows(params.between, all);
    if (!kIsWide && lane < p.group.num_ranks && n0 == 0) rows.word() = all->row[lane];
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

    // This lane's row of token t in a round, or -1, if it stands for a rank of this node.
    __device__ int32_t home_row(LoadedRows& rows, int t, int round) const {
        const CombineParams& p = params.local;
        const Internode& b = params.between;
        int rank = round * 32 + threadIdx.x % 32;
        int32_t row;
        if constexpr (kIsWide) {
            if (rank >= p.group.num_ranks) return -1;
            row = node_rows(b, b.own_rows, p.num_tokens, b.network.node, t)->row[rank];
        } else {
            if (rank >= kHomeLanes) return -1;
            row = rows.word();
        }
        return row < 0 ? -1 : checked_row(p.group, writer.shared.peers, epoch, t, rank, row);
    }

    // One chunk of token t: rows of this node's ranks, `row` of each lane and round; parts of nodes of the lanes in
    // `first`, then of the nodes that these lanes do not stand for, from the rings of a set. False after a fault.
    __device__ bool load_chunk(int t, int chunk, uint32_t first, const int32_t (&row)[kRounds], int num_rows,
                               int channel, int first_ring) {
        const CombineParams& p = params.local;
        const Internode& b = params.between;
        constexpr uint32_t kPartMask = ~0u << kHomeLanes;
        int lane = threadIdx.x % 32, loaded = 0;
        uint32_t begin = chunk * p.chunk_bytes, size = Wire::num_bytes(p, chunk);
        bool ok = true, ends = chunk == p.num_chunks - 1;
        SlotInfo info{t, static_cast<int16_t>(chunk), static_cast<int16_t>(num_rows)};
        if (num_rows == 0) writer.mark(t, chunk);
        if constexpr (kIsWide)
            for (int r = 0; r < kRounds; ++r) {
                uint32_t lanes = __ballot_sync(~0u, row[r] >= 0);
                auto from = row[r] >= 0 ? peer_chunk(writer.shared, r * 32 + lane, row[r], begin) : nullptr;
                writer.load(lanes, from, size, loaded == 0, info, -1);
                loaded += __popc(lanes);
            }
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
            else if (!kIsWide && row[0] >= 0)
                from = peer_chunk(writer.shared, lane, row[0], begin);
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
            int32_t row[kRounds];
#pragma unroll
            for (int r = 0; r < kRounds; ++r) row[r] = home_row(rows, t, r);
            int lane = threadIdx.x % 32;
            uint32_t first = __ballot_sync(~0u, lane < kHomeLanes ? row[0] >= 0 : rows.go_anywhere());
            int num_rows = __popc(first);
            if constexpr (kIsWide)
                for (int r = 0; r < kRounds; ++r) num_rows += __popc(__ballot_sync(~0u, row[r] >= 0));
            for (int n0 = kPartLanes; n0 < b.network.num_nodes; n0 += kPartLanes)
                num_rows += __popc(__ballot_sync(~0u, lane_rows(params, t, n0).go_anywhere()));
            for (int chunk = 0; chunk < p.num_chunks && ok; ++chunk)
                ok = load_chunk(t, chunk, first, row, num_rows, rings.channel(set), set * b.network.num_nodes);
            if (++set == rings.num_sets) set = 0;
        }
        writer.mark(-1, 0);
    }
};

// Owners are taken four at a time, with eight lanes for each; where nodes are large, one at a time in rounds.
constexpr int kOwnersAtOnce = kIsWide ? 1 : 32 / kMaxRanks;
constexpr int kLanesOfOwner = 32 / kOwnersAtOnce;

// The rank that this lane stands for in a round.
__device__ __forceinline__ int rank_of_owner(int round) { return round * 32 + threadIdx.x % kLanesOfOwner; }

// This lane's row of the token t of a home, or -1, from n0 on.
template <class Net>
__device__ __forceinline__ int32_t owner_row(const InternodeCombineParams& params, int t, int n0, int round) {
    const Group& g = params.local.group;
    const Internode& b = params.between;
    int place = n0 + static_cast<int>(threadIdx.x % 32) / kLanesOfOwner, rank = rank_of_owner(round);
    if (place >= Homes<Net>::size(b.network) || !Homes<Net>::is_used(b.network, place) || rank >= g.num_ranks)
        return -1;
    if (t >= at<const int32_t>(b.source_tokens)[place]) return -1;
    return node_rows(b, b.forward_rows, b.max_tokens, place, t)->row[rank];
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
    int32_t next_row[kRounds];
#pragma unroll
    for (int r = 0; r < kRounds; ++r) next_row[r] = owner_row<Net>(params, rings.first, 0, r);
    for (int t = rings.first, n0 = 0; t < most;) {
        int next_n0 = n0 + kOwnersAtOnce, next_t = t;
        if (next_n0 >= num_homes) next_n0 = 0, next_t += rings.step;
        int32_t row[kRounds];
        uint32_t rows[kRounds];
#pragma unroll
        for (int r = 0; r < kRounds; ++r) {
            row[r] = next_row[r];
            if (row[r] >= 0) row[r] = checked_row(p.group, writer.shared.peers, epoch, t, rank_of_owner(r), row[r]);
            next_row[r] = owner_row<Net>(params, next_t, next_n0, r);
            rows[r] = __ballot_sync(~0u, row[r] >= 0);
        }
        for (int i = 0; i < kOwnersAtOnce; ++i) {
            uint32_t of_owner[kRounds];
            int num_rows = 0;
#pragma unroll
            for (int r = 0; r < kRounds; ++r) {
                of_owner[r] = kIsWide ? rows[r] : rows[r] & 0xffu << (i * kLanesOfOwner);
                num_rows += __popc(of_owner[r]);
            }
            if (num_rows == 0) continue;
            for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
                SlotInfo info{set * num_homes + n0 + i, static_cast<int16_t>(chunk), static_cast<int16_t>(num_rows)};
                bool first = true;
#pragma unroll
                for (int r = 0; r < kRounds; ++r) {
                    const uint8_t* from =
                        row[r] >= 0 ? peer_chunk(writer.shared, rank_of_owner(r), row[r], chunk * p.chunk_bytes)
                                    : nullptr;
                    writer.load(of_owner[r], from, Wire::num_bytes(p, chunk), first, info, -1);
                    first = first && of_owner[r] == 0;
                }
            }
        }
        if (next_t != t && ++set == rings.num_sets) set = 0;
        t = next_t;
        n0 = next_n0;
    }
    writer.mark(-1, 0);
}

}  // namespace deepep::normal
