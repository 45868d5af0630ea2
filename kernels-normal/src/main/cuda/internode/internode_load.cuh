// Combine across nodes: the warps that ask for rows, of a rank's own tokens and of its homes'.
//
// A row comes from a source: a rank of this node or, for an own token, another node. A lane stands for one source of
// one item, which is a token, and a warp for as many items as it has lanes for. What says where rows are is looked up
// for all of these together: by itself each look would take longer than summing a row. Where an item has more than 32
// sources the lanes take them in turns.
#pragma once

#include "internode_slots.cuh"

namespace deepep::normal {

// What the lanes of a loading warp stand for.
struct LaneDeal {
    int width;    // lanes of an item
    int turns;    // of the lanes, for all its sources
    int at_once;  // items
    int item, source;

    __device__ explicit LaneDeal(int num_sources)
        : width(min(num_sources, 32)), turns((num_sources + 31) / 32), at_once(32 / width) {
        int lane = threadIdx.x % 32;
        item = lane / width;  // at_once: no item
        source = lane % width;
    }
    __device__ uint32_t lanes_of(int i) const { return (~0u >> (32 - width)) << (i * width); }
};

// How many parts of a ring have come.
__device__ __forceinline__ const uint64_t* tail_of(const Internode& b, int node, int channel) {
    return at<const uint64_t>(incoming(b.network, b.tails, node)) + channel;
}

// Waits for more than `taken` parts of a ring, and returns how many have come. Out of line, for its registers.
template <class Net>
__device__ __noinline__ uint32_t await_part(Nodes<Net> nodes, uint32_t epoch, int node, int channel, uint32_t taken) {
    // acquire; pairs with tell_peers
    return await_count<Forwarders<Net>>(nodes, epoch, node, tail_of(nodes.b, node, channel), taken);
}

constexpr int32_t kNoRow = -1, kNoData = -2;  // nothing; a batch without rows, for a token that has none
constexpr int kRoundsAhead = 3;  // in which rows are wanted that are brought near

// Of a rank's own token: the ranks of its node, and the other nodes.
__device__ __forceinline__ int num_sources(const InternodeCombineParams& params) {
    return params.local.group.num_ranks + params.between.network.num_nodes - 1;
}

// The own tokens of a home block: rows of this node's ranks, then of the other nodes, from their rings.
template <class Net>
struct OwnTokens {
    static constexpr bool kMarksEmpty = true;  // tokens without rows have sums too
    const InternodeCombineParams& params;
    const PeerRows& peers;
    RingHead* heads;
    uint32_t epoch;
    BlockRings rings;
    uint32_t rivals;  // lanes whose parts come by the ring of this lane's
    int order = 0;    // of this lane's part among those of its ring that are at hand

    __device__ OwnTokens(const InternodeCombineParams& p, const PeerRows& rows, uint32_t e, const LaneDeal& deal)
        : params(p), peers(rows), heads(rings_of_block<RingHead>(p.local)), epoch(e), rings(combine_rings(p.between)),
          rivals(__match_any_sync(~0u, deal.item % rings.num_sets * 32 + deal.source)) {
        const Network& net = between().network;
        for (int r = threadIdx.x % 32; r < rings.num_sets * net.num_nodes; r += 32)
            heads[r].begin = incoming(net, between().slots, r % net.num_nodes) +
                             slot_offset(between(), rings.channel(r / net.num_nodes), 0);
        __syncwarp();
    }

    __device__ const Internode& between() const { return params.between; }
    __device__ int num_ranks() const { return params.local.group.num_ranks; }
    __device__ int num_sources() const { return normal::num_sources(params); }
    __device__ int token(int i) const { return rings.first + i * rings.step; }
    __device__ bool has(int i) const { return token(i) < params.local.num_tokens; }
    __device__ int node(int source) const {
        int own = between().network.node, other = source - num_ranks();
        return other < 0 ? own : other < own ? other : other + 1;
    }
    __device__ int set(int i) const { return rings.num_sets == 1 ? 0 : i % rings.num_sets; }
    __device__ int ring(int i, int source) const { return set(i) * between().network.num_nodes + node(source); }
    __device__ int32_t batch_token(int i) const { return token(i); }

    // Where the row is at a rank, or 0 if it comes from a node, or kNoRow. Brings near what is asked for `ahead`
    // items later.
    __device__ int32_t row(int i, int source, int ahead) const {
        if (!has(i) || source >= num_sources()) return kNoRow;
        const Internode& b = between();
        bool at_rank = source < num_ranks();
        int num_tokens = params.local.num_tokens;
        NodeRows* all = node_rows(b, b.own_rows, num_tokens, node(source), 0);
        prefetch_l2(rows_of_token(b, all, min(token(i + ahead), num_tokens - 1)));
        LoadedRows rows = load_rows(b, rows_of_token(b, all, token(i)), at_rank ? source : -1);
        if (!at_rank) return rows.go_anywhere() ? 0 : kNoRow;
        int32_t row = rows.row(source);
        return row < 0 ? kNoRow : checked_row(params.local.group, peers, epoch, token(i), source, row);
    }

    __device__ const uint8_t* from(int i, int source, int32_t row, uint32_t begin) const {
        if (source < num_ranks()) return peer_chunk(peers, source, row, begin);
        const RingHead& head = heads[ring(i, source)];
        uint32_t slot = head.slot + order, num_slots = between().num_slots;
        if (slot >= num_slots) slot -= num_slots;  // no more parts are at hand than a ring has slots
        return at<const uint8_t>(head.begin + begin, static_cast<uint64_t>(slot) * between().slot_bytes);
    }

    // Those of the lanes `left` that come before all whose part is missing: those of one item at least, for which this
    // waits. None after a fault. All lanes; comes: this lane's part does, and it is among them.
    __device__ uint32_t arrived(uint32_t left, bool comes, int i, int source, const LaneDeal& deal) {
        uint32_t before_me = (1u << threadIdx.x % 32) - 1;
        order = __popc(__ballot_sync(~0u, comes) & rivals & before_me);
        RingHead& head = heads[comes ? ring(i, source) : 0];
        for (bool looked = false;; looked = true) {
            bool missing = comes && static_cast<int>(head.put - head.taken) <= order;
            uint32_t blocked = __ballot_sync(~0u, missing);
            if (blocked == 0) return left;
            int first = (__ffs(blocked) - 1) / deal.width;
            uint32_t ready = left & ((1u << (first * deal.width)) - 1);
            if (looked && ready != 0) return ready;
            bool here = true;
            __syncwarp();  // all have looked at the count
            bool leads = missing && (blocked & rivals & before_me) == 0;  // the first of its ring
            if (leads && (!looked || deal.item == first)) here = look(head, i, source, looked);
            here = __all_sync(~0u, here);
            __syncwarp();
            fence_async_proxy();  // the counts were read by ordinary loads, the rows will be by the copy engine
            if (!here) return 0;
        }
    }

    // How many parts have come by now; waits: for one more at least. False after a fault.
    __device__ bool look(RingHead& head, int i, int source, bool waits) const {
        int channel = rings.channel(set(i));
        uint32_t put = head.put;
        if (waits) {
            put = await_part(Nodes<Net>{params.local.group, params.between}, epoch, node(source), channel, head.taken);
        } else {
            // as in await_part
            uint64_t word = load_acquire_sys(tail_of(params.between, node(source), channel));
            if (word_epoch(word) == epoch) put = word_value(word);
        }
        bool here = !waits || put != head.taken;
        head.put = put;
        return here;
    }

    // The last chunks of parts have been asked for.
    __device__ void take(bool comes, int i, int source) {
        uint32_t taken = __popc(__ballot_sync(~0u, comes) & rivals);
        __syncwarp();  // all have looked at it
        if (comes && order == 0) {
            RingHead& head = heads[ring(i, source)];
            head.taken += taken;
            head.slot += taken;
            uint32_t num_slots = between().num_slots;
            if (head.slot >= num_slots) head.slot -= num_slots;
        }
        __syncwarp();
    }
};

// The tokens of all homes that a summing block sums, by token and then by home.
template <class Net>
struct HomeTokens {
    static constexpr bool kMarksEmpty = false;
    using Homes = normal::Homes<Net>;
    const InternodeCombineParams& params;
    const PeerRows& peers;
    uint32_t epoch;
    BlockRings rings;
    const RingTail* tails;
    int most;   // tokens of a home
    int turns;  // homes

    __device__ const Internode& between() const { return params.between; }
    __device__ int num_sources() const { return params.local.group.num_ranks; }
    __device__ int token(int i) const { return rings.first + i / turns * rings.step; }
    __device__ bool has(int i) const { return token(i) < most; }
    __device__ int place(int i) const {
        if (Routes<Net>::kMaskable) return tails[i % turns].place;
        return (between().network.node + 1 + i % turns) % Homes::size(between().network);
    }
    __device__ int ring(int i, int) const {
        return i / turns % rings.num_sets * Homes::size(between().network) + place(i);
    }
    __device__ int32_t batch_token(int i) const { return ring(i, 0); }

    __device__ int32_t row(int i, int source, int ahead) const {
        const Internode& b = between();
        if (!has(i) || source >= num_sources()) return kNoRow;
        int home = place(i);
        NodeRows* all = node_rows(b, b.forward_rows, b.max_tokens, home, 0);
        prefetch_l2(rows_of_token(b, all, min(token(i + ahead), b.max_tokens - 1))->row + source);
        int32_t row = rows_of_token(b, all, token(i))->row[source];
        int32_t num_tokens = at<const int32_t>(b.source_tokens)[home];
        if (row < 0 || token(i) >= num_tokens) return kNoRow;
        return checked_row(params.local.group, peers, epoch, token(i), source, row);
    }

    __device__ const uint8_t* from(int, int source, int32_t row, uint32_t begin) const {
        return peer_chunk(peers, source, row, begin);
    }

    __device__ uint32_t arrived(uint32_t left, bool, int, int, const LaneDeal&) const { return left; }
    __device__ void take(bool, int, int) const {}
};

// Asks for the rows of `lanes`. row: of this lane, of item i. more: others of the item follow.
template <class Wire, class Items>
__device__ inline void load_rows(const CombineParams& p, Items& items, InternodeCombineShared& shared,
                                 BatchWriter<Wire>& writer, const LaneDeal& deal, uint32_t lanes, int i, int32_t row,
                                 int source, int chunk, bool more) {
    bool is_used = lanes >> (threadIdx.x % 32) & 1, has_row = is_used && row >= 0;
    LaneRow mine{is_used, has_row, is_used ? lanes & deal.lanes_of(deal.item) : 0, items.batch_token(i),
                 has_row ? items.from(i, source, row, chunk * p.chunk_bytes) : nullptr};
    int ring = has_row && source >= p.group.num_ranks && chunk == p.num_chunks - 1 ? items.ring(i, source) : -1;
    writer.load(mine, chunk, more, [&](uint32_t b, uint32_t j) { shared.ring_of[b][j] = ring; });
}

// A chunk of each item that has a lane in `group`; of more than one, if their rows are single chunks. row: of this
// lane. False after a fault.
template <class Wire, class Items>
__device__ inline bool load_chunks(const CombineParams& p, Items& items, InternodeCombineShared& shared,
                                   BatchWriter<Wire>& writer, const LaneDeal& deal, uint32_t group, int i, int32_t row,
                                   int chunk) {
    int lane = threadIdx.x % 32;
    uint32_t mine = deal.item < deal.at_once ? deal.lanes_of(deal.item) : 0;
    bool none = (__ballot_sync(~0u, row >= 0) & mine) == 0;
    if (Items::kMarksEmpty && mine != 0 && items.has(i) && none && deal.source == 0) row = kNoData;
    uint32_t left = __ballot_sync(~0u, row != kNoRow) & group;
    while (left != 0) {
        bool comes = (left >> lane & 1) && row >= 0 && deal.source >= p.group.num_ranks;
        uint32_t now = items.arrived(left, comes && chunk == 0, i, deal.source, deal);
        if (now == 0) return false;
        load_rows(p, items, shared, writer, deal, now, i, row, deal.source, chunk, false);
        if (chunk == p.num_chunks - 1) items.take(comes && (now >> lane & 1), i, deal.source);
        left &= ~now;
    }
    return true;
}

// A chunk of an item that has more sources than the warp has lanes. False after a fault.
template <class Wire, class Items>
__device__ inline bool load_large(const CombineParams& p, Items& items, InternodeCombineShared& shared,
                                  BatchWriter<Wire>& writer, const LaneDeal& deal, int i, int chunk) {
    int num_left = 0;
    bool begun = false;
#pragma unroll 1
    for (int source = threadIdx.x % 32; source < deal.turns * 32; source += 32)
        num_left += __popc(__ballot_sync(~0u, items.row(i, source, 0) >= 0));
    if (num_left == 0 && Items::kMarksEmpty) writer.mark(items.batch_token(i), chunk);
#pragma unroll 1
    for (int source = threadIdx.x % 32; num_left > 0; source += 32) {
        int32_t row = items.row(i, source, 0);
        uint32_t left = __ballot_sync(~0u, row >= 0);
        while (left != 0) {
            bool comes = row >= 0 && (left >> threadIdx.x % 32 & 1) && source >= p.group.num_ranks;
            uint32_t now = items.arrived(left, comes && chunk == 0, i, source, deal);
            if (now == 0) {
                if (begun) writer.mark(items.batch_token(i), chunk);  // consumers wait for the last
                return false;
            }
            num_left -= __popc(now);
            load_rows(p, items, shared, writer, deal, now, i, row, source, chunk, num_left > 0);
            if (chunk == p.num_chunks - 1) items.take(comes && (now >> threadIdx.x % 32 & 1), i, source);
            left &= ~now;
            begun = true;
        }
    }
    return true;
}

// Warp 0 of a block, all lanes.
template <bool kMany, class Wire, class Items>
__device__ inline void load_items(const CombineParams& p, Items items, InternodeCombineShared& shared,
                                  BatchWriter<Wire>& writer, const LaneDeal& deal) {
    bool ok = true;
    if constexpr (kMany) {
        for (int i = 0; ok && items.has(i); ++i)
            for (int chunk = 0; ok && chunk < p.num_chunks; ++chunk)
                ok = load_large(p, items, shared, writer, deal, i, chunk);
    } else {
        int ahead = kRoundsAhead * deal.at_once, at_once = p.num_chunks == 1 ? deal.at_once : 1;
        bool is_dealt = deal.item < deal.at_once;
        for (int first = 0; ok && items.has(first); first += deal.at_once) {
            int i = first + deal.item;
            int32_t row = is_dealt ? items.row(i, deal.source, ahead) : kNoRow;
            for (int item = 0; ok && item < deal.at_once && items.has(first + item); item += at_once) {
                uint32_t group = at_once == 1 ? deal.lanes_of(item) : ~0u;
                for (int chunk = 0; ok && chunk < p.num_chunks; ++chunk)
                    ok = load_chunks(p, items, shared, writer, deal, group, i, row, chunk);
            }
        }
    }
    writer.finish();
}

// The loading warps' functions are out of line: what the rest of the kernel keeps would cost them registers.
// They are static, because a relocatable function has as many registers as it likes, also more than its kernel.
template <class Net, class Wire>
static __device__ __noinline__ void load_own_tokens(uint32_t epoch) {
    InternodeCombineShared& shared = combine_shared();
    const InternodeCombineParams& params = shared.params;
    const CombineParams& p = params.local;
    LaneDeal deal(num_sources(params));
    OwnTokens<Net> tokens(params, shared.peers, epoch, deal);
    BatchWriter<Wire> writer(p, shared.ring, dynamic_shared(), num_slots_of_block(params), false);
    if (num_sources(params) <= 32)
        load_items<false>(p, tokens, shared, writer, deal);
    else
        load_items<true>(p, tokens, shared, writer, deal);
}

// Notes in the tail of the i-th ring of the block whose turn is the i-th.
template <class Net, class Wire>
static __device__ __noinline__ void load_for_homes(uint32_t epoch) {
    using Homes = normal::Homes<Net>;
    InternodeCombineShared& shared = combine_shared();
    const InternodeCombineParams& params = shared.params;
    const Internode& b = params.between;
    auto tails = rings_of_block<RingTail>(params.local);
    int lane = threadIdx.x % 32, size = Homes::size(b.network), most = 0, turns = 0;
    for (int first = 1; first < Homes::end_turn(b.network); first += 32) {
        int turn = first + lane, place = (b.network.node + turn) % size;
        bool is_used = turn < Homes::end_turn(b.network) && Homes::is_used(b.network, place);
        if (is_used) most = max(most, at<const int32_t>(b.source_tokens)[place]);
        uint32_t all = __ballot_sync(~0u, is_used);
        if (Routes<Net>::kMaskable && is_used) tails[turns + __popc(all & ((1u << lane) - 1))].place = place;
        turns += __popc(all);
    }
    __syncwarp();
    most = __reduce_max_sync(~0u, most);  // 0 without homes
    HomeTokens<Net> tokens{params, shared.peers, epoch, combine_rings(b), tails, most, max(turns, 1)};
    BatchWriter<Wire> writer(params.local, shared.ring, dynamic_shared(), num_slots_of_block(params), false);
    load_items<kIsWide>(params.local, tokens, shared, writer, LaneDeal(tokens.num_sources()));
}

}  // namespace deepep::normal
