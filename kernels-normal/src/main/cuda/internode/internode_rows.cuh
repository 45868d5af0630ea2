// Third phase of a dispatch across nodes: rows. A sending warp loads a token once and stores it to the ranks of its
// node that receive it, and once for each other node into a ring at the peer there. A forwarding warp empties the rings
// of one channel: one load of a row, one store to each rank of its node that receives it.
//
// A channel belongs to one warp that sends and to one that forwards, in the same block on every rank. Tokens are handed
// out to the sending warps of all blocks in their order, because SMs do not get equal shares of the links. So with each
// row comes where it goes at the peer, and the writer of a ring says at the end how many rows that were.
#pragma once

#include "internode_meta.cuh"
#include "internode_rings.cuh"

namespace deepep::normal {

constexpr int kTokensPending = 2;  // tokens of a sending warp whose stores may be on their way
constexpr int kNoneReady = -1, kAllTaken = -2, kGaveUp = -3;

constexpr int kTellers = 2;  // warps of a block: one tells peers of rows that it put, one of rows that it took

// Of the warp-th that sends, and of the warp-th that forwards.
__device__ __forceinline__ int channel_of_warp(int warp) { return warp * gridDim.x + blockIdx.x; }

// Where a token goes at the ranks of a node: orders, or rows when cached.
__device__ __forceinline__ const NodeRows* orders_at(const InternodeDispatchParams& params, int t, int node) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    return node_rows(b, p.cached ? b.own_rows : p.token_order, p.num_tokens, node, t);
}

// What says whether token t crosses to `node`.
__device__ __forceinline__ LoadedRows crossing(const InternodeDispatchParams& params, int t, int node) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    if (t >= p.num_tokens || node >= b.network.num_nodes || node == b.network.node) return no_rows();
    return load_rows(b, orders_at(params, t, node));
}

constexpr int kQuadsAtOnce = kIsWide ? 1 : kMaxRanks / 4;

// Tells the forwarder on a node where token t goes there, behind the row in its slot, at `to`. orders: of the token at
// that node, as they were loaded. counted: the block that has counted it.
__device__ __forceinline__ void put_places(const InternodeDispatchParams& params, const LoadedRows& orders, int t,
                                           int node, int counted, uint64_t to) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    auto bases = at<const int4>(b.block_bases) + (counted * b.network.num_nodes + node) * (node_places(b) / 4);
    auto place = [&](int32_t order, int32_t base) { return order < 0 || p.cached ? order : order + base; };
#pragma unroll kQuadsAtOnce
    for (int i = 0; i < node_places(b) / 4; ++i) {
        int4 order = orders.quad(orders_at(params, t, node), i), base = bases[i];
        at<int4>(to)[i] = make_int4(place(order.x, base.x), place(order.y, base.y), place(order.z, base.z),
                                    place(order.w, base.w));
    }
}

// The rank of this node that a lane stands for in a round, if there is one with that number.
__device__ __forceinline__ int rank_of_lane(int round) { return round * 32 + threadIdx.x % 32; }

// The order (row when cached) of token t at that rank, or -1.
__device__ __forceinline__ int32_t local_order(const InternodeDispatchParams& params, int t, int rank) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    if (t >= p.num_tokens || rank >= p.group.num_ranks) return -1;
    return node_rows(b, p.cached ? b.own_rows : p.token_order, p.num_tokens, b.network.node, t)->row[rank];
}

// What is to be added to it to get the row, if that block has counted the token.
__device__ __forceinline__ int32_t local_base(const InternodeDispatchParams& params, int t, int block, int rank) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    if (p.cached || t >= p.num_tokens || rank >= p.group.num_ranks) return 0;
    int place = (block * b.network.num_nodes + b.network.node) * node_places(b) + rank;
    return at<const int32_t>(b.block_bases)[place];
}

// The block that has counted a token, for tokens in ascending order and without a division for each.
struct CountingBlock {
    int per_block, end, index = 0;  // end: the first token of the next block

    __device__ explicit CountingBlock(int num_tokens) : per_block(tokens_per_block(num_tokens)), end(per_block) {}
    __device__ __forceinline__ int of(int t) {
        for (; t >= end; end += per_block) ++index;
        return index;
    }
};

// The tail of a ring as one lane of a sending warp sees it. Of those of the first 32 nodes the lanes have copies of
// their own, in registers; shared memory has what is done of them.
template <class Net>
struct RowPutter {
    Nodes<Net> nodes;
    uint32_t epoch;
    int channel;
    RingTail* tails;
    uint32_t* state;  // see await_room

    // A row to a node, from shared memory, and by place_at(address) where it goes. False if there will be no room.
    template <class PlaceAt>
    __device__ __forceinline__ bool put(int node, RingTail& tail, const uint8_t* row, uint32_t num_bytes,
                                        PlaceAt place_at) {
        using To = Forwarders<Net>;
        if (!has_room(nodes.b, tail)) {
            bulk_wait_written();
            note(&tails[node].done, tail.put);
            if (!await_room<To>(nodes, epoch, channel, node, tail, state)) return false;
        }
        uint64_t slot = next_slot<To>(nodes.b, channel, node, tail);
        bulk_store(at<uint8_t>(slot), row, num_bytes);
        place_at(slot + num_bytes);
        advance(nodes.b, tail);
        tail.recent |= 1;
        return true;
    }

    // Notes the rows of all but the last kTokensPending tokens, after bulk_wait_written.
    __device__ __forceinline__ void note_written(int node, const RingTail& tail) {
        uint32_t written = tail.put - __popc(tail.recent & ((1u << kTokensPending) - 1));
        if (static_cast<int32_t>(written - tails[node].done) > 0) note(&tails[node].done, written);
    }
};

// Tells how many rows a ring gets in all. Nothing is ordered by it: tails say what is there. Out of line, for its
// registers.
template <class Net>
__device__ __noinline__ void tell_total(Nodes<Net> nodes, uint32_t epoch, int channel, int node, uint32_t total) {
    using To = Forwarders<Net>;
    const Internode& b = nodes.b;
    if (To::is_used(b.network, node))  // pairs with pick_ring
        To::signal(b.network, node, b.totals, channel * sizeof(uint64_t), pack_word(epoch, total));
}

// Where rows begin at that rank.
__device__ __forceinline__ uint64_t local_heap(const DispatchParams& p, int rank) {
    return rank < p.group.num_ranks ? p.group.heap[rank] + p.recv_offset : 0;
}

// A warp that sends. Unless ok nothing is sent, but shared memory must outlive the first load.
template <class Net>
__device__ inline void send_tokens(const InternodeDispatchParams& params, uint32_t epoch, bool ok, RingTail* tails,
                                   uint32_t* state, uint8_t* stages, uint64_t* barriers) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    const Network& net = b.network;
    int lane = threadIdx.x % 32, channel = channel_of_warp(threadIdx.x / 32), t = channel, unnoted = 0;
    if (!ok) {
        if (t < p.num_tokens) barrier_wait(&barriers[0], 0);
        return;
    }
    RowSource source = row_source(p);
    uint64_t heap[kRounds];
    int32_t order[kRounds], base[kRounds], next_order[kRounds], next_base[kRounds];
#pragma unroll
    for (int r = 0; r < kRounds; ++r) heap[r] = local_heap(p, rank_of_lane(r));
    CountingBlock counting(p.num_tokens);
    RowPutter<Net> putter{{p.group, b}, epoch, channel, tails, state};
    RingTail first = {};  // of node `lane`
    uint32_t* cursor = &state_of(p.group)->cursor;
    uint32_t ticket = lane == 0 ? add_relaxed_gpu(cursor, 1) : 0;
    int block = counting.of(min(t, p.num_tokens - 1));
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
        order[r] = local_order(params, t, rank_of_lane(r));
        base[r] = local_base(params, t, block, rank_of_lane(r));
    }
    LoadedRows crosses = crossing(params, t, lane);
    uint32_t stage = 0, phase = 0;
    while (t < p.num_tokens && ok) {
        int next = b.num_channels + __shfl_sync(~0u, ticket, 0);
        if (lane == 0) ticket = add_relaxed_gpu(cursor, 1);
        int next_block = counting.of(min(next, p.num_tokens - 1));
#pragma unroll
        for (int r = 0; r < kRounds; ++r) {
            next_order[r] = local_order(params, next, rank_of_lane(r));
            next_base[r] = local_base(params, next, next_block, rank_of_lane(r));
        }
        LoadedRows next_crosses = crossing(params, next, lane);
        uint32_t next_stage = stage == kRowStages - 1 ? 0 : stage + 1;
        bulk_wait_read<kRowStages - 2>();
        __syncwarp();
        if (next < p.num_tokens)
            load_row(p, source, next, stages + next_stage * p.row_stride, &barriers[next_stage], lane);
        const uint8_t* row_stage = stages + stage * p.row_stride;
        barrier_wait(&barriers[stage], phase);
#pragma unroll
        for (int r = 0; r < kRounds; ++r)
            if (order[r] >= 0)
                bulk_store(at<uint8_t>(heap[r], static_cast<uint64_t>(order[r] + base[r]) * p.row_stride), row_stage,
                           p.row_stride);
        first.recent <<= 1;
        if (crosses.go_anywhere())
            ok = putter.put(lane, first, row_stage, p.row_stride,
                            [&](uint64_t to) { put_places(params, crosses, t, lane, block, to); });
        for (int n = lane + 32; n < net.num_nodes && ok; n += 32) {
            tails[n].recent <<= 1;
            LoadedRows orders = crossing(params, t, n);
            if (orders.go_anywhere())
                ok = putter.put(n, tails[n], row_stage, p.row_stride,
                                [&](uint64_t to) { put_places(params, orders, t, n, block, to); });
        }
        bulk_commit();
        if (++unnoted >= b.send_chunk) {  // peers are not told of less, and both steps take hundreds of cycles
            unnoted = 0;
            bulk_wait_written<kTokensPending>();
            if (lane < net.num_nodes) putter.note_written(lane, first);
            for (int n = lane + 32; n < net.num_nodes; n += 32) putter.note_written(n, tails[n]);
        }
        ok = __all_sync(~0u, ok);
        if (next_stage == 0) phase ^= 1;
        if (!ok && next < p.num_tokens) barrier_wait(&barriers[next_stage], phase);
        t = next;
        block = next_block;
        stage = next_stage;
#pragma unroll
        for (int r = 0; r < kRounds; ++r) {
            order[r] = next_order[r];
            base[r] = next_base[r];
        }
        crosses = next_crosses;
    }
    bulk_wait_written();
    if (lane < net.num_nodes) {
        note(&tails[lane].done, first.put);
        if (ok) tell_total<Net>(putter.nodes, epoch, channel, lane, first.put);
    }
    for (int n = lane + 32; n < net.num_nodes; n += 32) {
        note(&tails[n].done, tails[n].put);
        if (ok) tell_total<Net>(putter.nodes, epoch, channel, n, tails[n].put);
    }
    fence_async_proxy();
}

// Whether a ring has no row as yet but one may come.
__device__ __forceinline__ bool lacks_row(const RingHead& ring) {
    return ring.put == ring.taken && ring.taken != ring.total;
}

// The slow path of pick_ring, by one lane: go_on. To blame is the home from `first` on that has to send a row and
// does not say that it waits itself.
template <class Net>
__device__ __noinline__ LateWait go_on_for_row(Nodes<Net> nodes, uint32_t epoch, const RingHead* rings, int first,
                                               LateWait late) {
    using From = Homes<Net>;
    const Network& net = nodes.b.network;
    int missing = first;
    for (int n = From::size(net) - 1; n >= first; --n)
        if (From::is_used(net, n) && lacks_row(rings[n]) && nodes.patience(epoch, From::rank(nodes.g, net, n)) == 0)
            missing = n;
    uint32_t taken = rings[missing].taken;
    Wait wait{From::rank(nodes.g, net, missing), kPhaseRows, taken + 1ll, false, true};
    return go_on(nodes, epoch, wait, late, pack_word(epoch, taken));
}

// A home of whose ring a row can be taken, after `last` in turn; kNoneReady only if it must not wait. All lanes.
template <class Net>
__device__ inline int pick_ring(const InternodeDispatchParams& params, uint32_t epoch, int channel, RingHead* rings,
                                int last, bool waits) {
    using From = Homes<Net>;
    const Internode& b = params.between;
    const Network& net = b.network;
    int lane = threadIdx.x % 32;
    LateWait since{0};
    for (uint32_t spins = 1;; ++spins) {
        bool looked = false;
        int late = -1, before = -1, after = -1;  // one that still has to send; ready ones up to, and past, the last
        for (int n0 = 0; n0 < From::size(net); n0 += 32) {
            int n = n0 + lane;
            bool mine = n < From::size(net) && From::is_used(net, n);
            bool looks = mine && lacks_row(rings[n]);
            if (looks) {
                uint64_t total = load_relaxed_sys(at<const uint64_t>(incoming(net, b.totals, n)) + channel);
                if (word_epoch(total) == epoch) rings[n].total = word_value(total);  // pairs with tell_total
                uint64_t word = load_acquire_sys(at<const uint64_t>(incoming(net, b.tails, n)) + channel);
                if (word_epoch(word) == epoch) rings[n].put = word_value(word);  // acquire; pairs with tell_peers
                looks = rings[n].put != rings[n].taken;
            }
            bool pending = mine && rings[n].taken != rings[n].total;
            looked |= looks;
            uint32_t ready = __ballot_sync(~0u, pending && rings[n].put != rings[n].taken);
            uint32_t waiting = __ballot_sync(~0u, pending) & ~ready;
            if (waiting != 0 && late < 0) late = n0 + __ffs(waiting) - 1;
            uint32_t past = last < n0 ? ready : last - n0 >= 31 ? 0 : ready & (~0u << (last - n0 + 1));
            if (past != 0 && after < 0) after = n0 + __ffs(past) - 1;
            if (ready != 0 && before < 0) before = n0 + __ffs(ready) - 1;
        }
        if (__any_sync(~0u, looked)) fence_async_proxy();  // counts read by ordinary loads, rows by the copy engine
        __syncwarp();  // places are read by all lanes, counts were by one
        if (after >= 0 || before >= 0) return after >= 0 ? after : before;
        if (late < 0) return kAllTaken;
        if (!waits) return kNoneReady;
        if (spins % kSpinsPerLook != 0) continue;
        if (since.begin == 0) since.begin = now_ns();
        if (lane == 0) since = go_on_for_row(Nodes<Net>{params.local.group, b}, epoch, rings, late, since);
        if (__any_sync(~0u, since.gone < 0)) return kGaveUp;
    }
}

// A warp that forwards. One row is loaded while the last one leaves.
template <class Net>
__device__ inline void forward_tokens(const InternodeDispatchParams& params, uint32_t epoch, int channel,
                                      RingHead* rings, uint8_t* stages, uint64_t* barriers) {
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    const Network& net = b.network;
    int lane = threadIdx.x % 32;
    for (int n = lane; n < Homes<Net>::size(net); n += 32) rings[n].total = kNotTold;
    __syncwarp();
    uint64_t heap[kRounds];
    int place = kNoneReady;         // of the row in flight
    int32_t row[kRounds];           // of it at the ranks of this node
    uint32_t stage = 0, phase = 0;  // of its copy in shared memory
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
        heap[r] = local_heap(p, rank_of_lane(r));
        row[r] = -1;
    }
    for (;;) {
        bool busy = place >= 0;
        int next = pick_ring<Net>(params, epoch, channel, rings, max(place, 0), !busy);
        int32_t next_row[kRounds];
#pragma unroll
        for (int r = 0; r < kRounds; ++r) next_row[r] = -1;
        if (next < 0 && !busy) break;
        if (next >= 0) {
            RingHead& ring = rings[next];
            uint64_t slot = incoming(net, b.slots, next) + slot_offset(b, channel, ring.taken);
            auto places = at<const int32_t>(slot, p.row_stride);  // pairs with put_places
#pragma unroll
            for (int r = 0; r < kRounds; ++r)
                if (rank_of_lane(r) < p.group.num_ranks) next_row[r] = places[rank_of_lane(r)];
            uint32_t load_stage = !busy ? stage : stage == kRowStages - 1 ? 0 : stage + 1;
            bulk_wait_read<kRowStages - 2>();
            __syncwarp();
            if (lane == 0) {
                ++ring.taken;
                barrier_arrive_expect(&barriers[load_stage], p.row_stride);
                bulk_load(stages + load_stage * p.row_stride, at<const uint8_t>(slot), p.row_stride,
                          &barriers[load_stage]);
            }
        }
        if (busy) {
            barrier_wait(&barriers[stage], phase);
#pragma unroll
            for (int r = 0; r < kRounds; ++r)
                if (row[r] >= 0)
                    bulk_store(at<uint8_t>(heap[r], static_cast<uint64_t>(row[r]) * p.row_stride),
                               stages + stage * p.row_stride, p.row_stride);
            bulk_commit();
            if (lane == 0) note(&rings[place].done, rings[place].done + 1);
            if (++stage == kRowStages) stage = 0, phase ^= 1;
        }
        __syncwarp();
        place = next;
#pragma unroll
        for (int r = 0; r < kRounds; ++r) row[r] = next_row[r];
    }
    bulk_wait_written();
    fence_async_proxy();
}

}  // namespace deepep::normal
