// Normal-mode combine across nodes, in one launch.
//
// Each rank launches it once per call. Even blocks bring home the rank's own tokens: they pull a token's rows from the
// ranks of this node, and take from the rings what each other node has summed. Odd blocks sum for the peers: they pull a
// token's rows from the ranks of this node, round the sum to bf16 and put it into the owner's ring.
// Order of a sum in fp32: rows of the own node by rank, then nodes in order, then biases; weights likewise.
//
// A channel belongs to one pair of blocks on every rank; its tokens are every num_channels-th. Reducing blocks go through
// tokens in order and, for each, through owners in order; owners take tokens in order. So the first unfinished token of a
// channel never waits for a later one, whatever rings are full.
//
// Writes: out, out_weights, rings and weights at the peers, the status block. Reads: x and weights of this node's ranks,
// the routing of the dispatch, biases, rings and weights from the peers. The closing flags say that x may be overwritten.
//
// Launch: an even number of blocks up to 256, all of them resident together. Threads: 96 + consumers, where consumers is
// a multiple of 32, at least 192 and at least chunk_bytes / 32; warp 0 loads, warp 1 tells peers of rows, warp 2 of an
// even block sums weights, that of an odd block puts sums into rings, the others sum rows. Dynamic shared memory: num_slots *
// chunk_bytes, of which odd blocks use the last three slots for sums; at rings_offset kRingStateBytes for each node.
#pragma once

#include "combine_peers.cuh"
#include "combine_sum.cuh"
#include "internode_rings.cuh"

namespace deepep::normal {

constexpr int kInternodeServiceWarps = 3;
constexpr int kSumStages = 3;
constexpr int kPutsPending = 4;   // stores of a putting warp that may be on their way
constexpr int kLoadedAtOnce = 8;  // rows asked for together; fewer where there are fewer slots

struct InternodeCombineShared {
    SlotRing ring;
    PeerRows peers;
    int32_t ring_node[kMaxSlots];  // the node whose ring has a slot to give back once this chunk is here, or -1
    uint64_t sum_full[kSumStages], sum_empty[kSumStages];
    int32_t sum_node[kSumStages];  // owner of the chunk of a sum; -1: no more
    int32_t sum_chunk[kSumStages];
    uint32_t state;  // of the warp that fills or empties rings
};

// Sums for a peer: chunks in shared memory, which the putting warp sends.
struct RingSink {
    const CombineParams& p;
    InternodeCombineShared& shared;
    uint8_t* stages;
    Consumers consumers;
    uint32_t count = 0;  // of chunks
    static constexpr bool kAddsBias = false;

    __device__ void taken(uint32_t) {}
    // acquire; pairs with the arrival of the putting warp
    __device__ void begin(const SlotInfo&) {
        barrier_wait(&shared.sum_empty[count % kSumStages], ~(count / kSumStages) & 1);
    }
    __device__ void store(const SlotInfo& info, uint32_t vector, uint4 sum) {
        auto to = reinterpret_cast<uint4*>(stages + count % kSumStages * p.chunk_bytes);
        to[vector - info.chunk * (p.chunk_bytes / 16)] = sum;
    }
    __device__ void end(const SlotInfo& info) { pass_on(info.token, info.chunk); }
    __device__ void finish() {
        begin({});
        pass_on(-1, 0);
    }
    __device__ void pass_on(int node, int chunk) {
        fence_async_proxy_shared();
        if (consumers.idx() == 0) {
            shared.sum_node[count % kSumStages] = node;
            shared.sum_chunk[count % kSumStages] = chunk;
        }
        barrier_arrive(&shared.sum_full[count % kSumStages]);  // release; pairs with put_sums
        ++count;
    }
};

// A rank's own tokens: as on one node, and a ring's slot is free again once its row is in shared memory.
struct OwnerSink : TokenSink {
    InternodeCombineShared& shared;
    RingHead* heads;
    Consumers consumers;

    __device__ OwnerSink(const CombineParams& p, InternodeCombineShared& s, RingHead* h, Consumers c)
        : TokenSink{p}, shared(s), heads(h), consumers(c) {}

    __device__ void taken(uint32_t slot) const {
        if (consumers.idx() != 0) return;
        int node = shared.ring_node[slot];
        if (node >= 0) note(&heads[node].done, heads[node].done + 1);
    }
    __device__ void finish() const {
        if (consumers.idx() == 0) note_more(&shared.state, kFinished);
    }
};

// Fills slots in order. All lanes of one warp.
struct SlotWriter {
    const CombineParams& p;
    InternodeCombineShared& shared;
    uint8_t* slots;
    uint32_t num_slots;
    uint32_t slot = 0, round = 0;  // of the next slot

    __device__ void advance(uint32_t count) {
        slot += count;
        if (slot >= num_slots) slot -= num_slots, ++round;
    }

    // Consumers leave slots in order, so the last of `count` speaks for all. acquire; pairs with their arrivals
    __device__ void await_empty(uint32_t count) {
        uint32_t last = slot + count - 1, last_round = round;
        if (last >= num_slots) last -= num_slots, ++last_round;
        barrier_wait(&shared.ring.empty[last], ~last_round & 1);
    }

    // One slot without data: a token without rows, or (token -1) the end.
    __device__ void mark(int token, int chunk) {
        await_empty(1);
        if (threadIdx.x % 32 == 0) {
            shared.ring.info[slot] = {token, static_cast<int16_t>(chunk), 0};
            shared.ring_node[slot] = -1;
            barrier_arrive(&shared.ring.full[slot]);
        }
        advance(1);
        __syncwarp();
    }

    // The chunks of all lanes in `lanes`, in their order. first: info belongs into the first slot.
    __device__ void load(uint32_t lanes, const uint8_t* from, uint32_t num_bytes, bool first, SlotInfo info,
                         int ring_node) {
        int lane = threadIdx.x % 32;
        uint32_t most = min(static_cast<uint32_t>(kLoadedAtOnce), num_slots);
        while (lanes != 0) {
            uint32_t order = __popc(lanes & ((1u << lane) - 1));
            bool mine = (lanes >> lane & 1) && order < most;
            uint32_t group = __ballot_sync(~0u, mine), count = __popc(group);
            await_empty(count);
            if (mine) {
                uint32_t s = slot + order;
                if (s >= num_slots) s -= num_slots;
                if (first && order == 0) shared.ring.info[s] = info;
                shared.ring_node[s] = ring_node;
                barrier_arrive_expect(&shared.ring.full[s], num_bytes);
                bulk_load(slots + s * p.chunk_bytes, from, num_bytes, &shared.ring.full[s]);
            }
            advance(count);
            __syncwarp();
            lanes &= ~group;
            first = false;
        }
    }
};

__device__ __forceinline__ uint32_t chunk_size(const CombineParams& p, int chunk) {
    return min(p.hidden * 2 - chunk * p.chunk_bytes, p.chunk_bytes);
}

__device__ __forceinline__ const uint8_t* peer_chunk(const InternodeCombineShared& shared, int rank, int32_t row,
                                                     uint32_t begin) {
    return at<const uint8_t>(shared.peers.x_base[rank] + begin,
                             static_cast<uint64_t>(row) * shared.peers.x_stride[rank]);
}

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

// Until the lanes in `parts` have the next row of their ring. All lanes.
__device__ inline bool await_parts(const InternodeCombineParams& params, uint32_t epoch, uint32_t parts, int node,
                                   RingHead* heads) {
    const Internode& b = params.between;
    bool arrived = true, looks = (parts >> (threadIdx.x % 32) & 1) && heads[node].put == heads[node].taken;
    if (!__any_sync(~0u, looks)) return true;
    if (looks) {
        auto word = at<const uint64_t>(incoming(b.network, b.tails, node)) + blockIdx.x / 2;
        uint64_t deadline = now_ns() + params.local.group.timeout_ns;
        heads[node].put = await_count(word, epoch, heads[node].taken, deadline);  // acquire; pairs with tell_peers
        arrived = heads[node].put != heads[node].taken;
        if (!arrived) record_count_fault(b, params.local.group, epoch, kPhaseRows, node, heads[node].taken);
    }
    arrived = __all_sync(~0u, arrived);
    fence_async_proxy();  // the counts were read by ordinary loads, the rows will be by the copy engine
    return arrived;
}

// Warp 0 of an even block: rows of this channel's own tokens, those of the node and then the parts of the others.
__device__ inline void load_own(const InternodeCombineParams& params, uint32_t epoch, SlotWriter& writer,
                                RingHead* heads) {
    const CombineParams& p = params.local;
    const Internode& b = params.between;
    InternodeCombineShared& shared = writer.shared;
    int lane = threadIdx.x % 32, channel = blockIdx.x / 2, num_nodes = b.network.num_nodes;
    constexpr uint32_t kPartMask = ~0u << kMaxRanks;
    LoadedRows next_rows = lane_rows(params, channel, 0);
    bool ok = true;
    for (int t = channel; t < p.num_tokens && ok; t += b.num_channels) {
        LoadedRows rows = next_rows;
        next_rows = lane_rows(params, t + b.num_channels, 0);
        int row = lane < kMaxRanks && rows.low.x >= 0 ? checked_row(p.group, shared.peers, epoch, t, lane, rows.low.x) : -1;
        uint32_t first = __ballot_sync(~0u, lane < kMaxRanks ? row >= 0 : rows.go_anywhere());
        int num_rows = __popc(first);
        for (int n0 = kPartLanes; n0 < num_nodes; n0 += kPartLanes)
            num_rows += __popc(__ballot_sync(~0u, lane_rows(params, t, n0).go_anywhere()));
        for (int chunk = 0; chunk < p.num_chunks && ok; ++chunk) {
            uint32_t begin = chunk * p.chunk_bytes, size = chunk_size(p, chunk);
            bool ends = chunk == p.num_chunks - 1;
            SlotInfo info{t, static_cast<int16_t>(chunk), static_cast<int16_t>(num_rows)};
            if (num_rows == 0) writer.mark(t, chunk);
            int loaded = 0;
            for (int n0 = 0; n0 < num_nodes && ok; n0 += kPartLanes) {
                uint32_t lanes =
                    n0 == 0 ? first : __ballot_sync(~0u, lane_rows(params, t, n0).go_anywhere());
                int node = part_node(b.network, n0);
                bool part = lanes & kPartMask & 1u << lane;
                ok = chunk != 0 || await_parts(params, epoch, lanes & kPartMask, node, heads);
                if (!ok) break;
                const uint8_t* from = nullptr;
                if (part)
                    from = at<const uint8_t>(incoming(b.network, b.slots, node) + begin,
                                             slot_offset(b, channel, heads[node].taken));
                else if (row >= 0)
                    from = peer_chunk(shared, lane, row, begin);
                writer.load(lanes, from, size, loaded == 0, info, part && ends ? node : -1);
                loaded += __popc(lanes);
                if (part && ends) ++heads[node].taken;
            }
            // The consumers have been promised num_rows, if anything.
            for (; !ok && loaded > 0 && loaded < num_rows; ++loaded) writer.mark(t, chunk);
        }
    }
    writer.mark(-1, 0);
}

// This lane's row of the token t of a peer, or -1: four owners at a time, from n0, eight lanes for each.
__device__ __forceinline__ int32_t owner_row(const InternodeCombineParams& params, int t, int n0) {
    const Group& g = params.local.group;
    const Internode& b = params.between;
    int lane = threadIdx.x % 32, node = n0 + lane / kMaxRanks, rank = lane % kMaxRanks;
    if (node >= b.network.num_nodes || node == b.network.node || rank >= g.num_ranks) return -1;
    if (t >= at<const int32_t>(b.source_tokens)[node]) return -1;
    return node_rows(b.forward_rows, b.max_tokens, node, t)->row[rank];
}

// Warp 0 of an odd block: rows of this channel's tokens of all peers, by token and then by owner.
__device__ inline void load_for_peers(const InternodeCombineParams& params, uint32_t epoch, SlotWriter& writer) {
    const CombineParams& p = params.local;
    const Internode& b = params.between;
    int lane = threadIdx.x % 32, channel = blockIdx.x / 2, num_nodes = b.network.num_nodes, most = 0;
    for (int n = lane; n < num_nodes; n += 32)
        if (n != b.network.node) most = max(most, at<const int32_t>(b.source_tokens)[n]);
    most = __reduce_max_sync(~0u, most);
    int32_t next_row = owner_row(params, channel, 0);
    for (int t = channel, n0 = 0; t < most;) {
        int next_n0 = n0 + 32 / kMaxRanks, next_t = t;
        if (next_n0 >= num_nodes) next_n0 = 0, next_t += b.num_channels;
        int32_t row = next_row;
        if (row >= 0) row = checked_row(p.group, writer.shared.peers, epoch, t, lane % kMaxRanks, row);
        next_row = owner_row(params, next_t, next_n0);
        uint32_t rows = __ballot_sync(~0u, row >= 0);
        for (int i = 0; i < 32 / kMaxRanks; ++i) {
            uint32_t of_owner = rows & 0xffu << (i * kMaxRanks);
            if (of_owner == 0) continue;
            for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
                SlotInfo info{n0 + i, static_cast<int16_t>(chunk), static_cast<int16_t>(__popc(of_owner))};
                const uint8_t* from =
                    row >= 0 ? peer_chunk(writer.shared, lane % kMaxRanks, row, chunk * p.chunk_bytes) : nullptr;
                writer.load(of_owner, from, chunk_size(p, chunk), true, info, -1);
            }
        }
        t = next_t;
        n0 = next_n0;
    }
    writer.mark(-1, 0);
}

// Warp 2 of an odd block: sums into the owners' rings, in the order in which they come.
template <class Net>
__device__ inline void put_sums(const InternodeCombineParams& params, uint32_t epoch, InternodeCombineShared& shared,
                                const uint8_t* stages, RingTail* tails) {
    const CombineParams& p = params.local;
    const Internode& b = params.between;
    int channel = blockIdx.x / 2;
    int pending[kPutsPending];  // of the latest stores, the newest first: the node, if a row ends with it
    bool ok = true;
#pragma unroll
    for (int j = 0; j < kPutsPending; ++j) pending[j] = -1;
    if (threadIdx.x % 32 != 0) return;
    auto note_all = [&] {
        bulk_wait_written();
        for (int n = 0; n < b.network.num_nodes; ++n) note(&tails[n].done, tails[n].put);
#pragma unroll
        for (int j = 0; j < kPutsPending; ++j) pending[j] = -1;
    };
    for (uint32_t i = 0;; ++i) {
        uint32_t stage = i % kSumStages;
        barrier_wait(&shared.sum_full[stage], i / kSumStages & 1);  // acquire; pairs with RingSink
        int node = shared.sum_node[stage], chunk = shared.sum_chunk[stage];
        if (node < 0) break;
        RingTail& tail = tails[node];
        if (ok && chunk == 0 && !has_room(b, tail)) {
            note_all();
            ok = await_room(b, p.group, epoch, channel, node, tail, &shared.state);
        }
        if (ok) {
            uint64_t slot = Net::outgoing(b.network, b.slots, node) + slot_offset(b, channel, tail.put);
            bulk_store(at<uint8_t>(slot, chunk * p.chunk_bytes), stages + stage * p.chunk_bytes, chunk_size(p, chunk));
        }
        bulk_commit();
        bulk_wait_read<1>();
        if (i > 0) barrier_arrive(&shared.sum_empty[(i - 1) % kSumStages]);  // release; pairs with RingSink
        bulk_wait_written<kPutsPending>();
        int written = pending[kPutsPending - 1];
        if (written >= 0) note(&tails[written].done, tails[written].done + 1);
#pragma unroll
        for (int j = kPutsPending - 1; j > 0; --j) pending[j] = pending[j - 1];
        pending[0] = ok && chunk == p.num_chunks - 1 ? node : -1;
        if (pending[0] >= 0) ++tail.put;
    }
    if (ok) note_all();
    note_more(&shared.state, kFinished);
}

constexpr int kWeightBatch = 4;

// Warp 2 of an even block: weights of a share of the peers' tokens to them, then weights of a share of its own tokens.
template <class Net>
__device__ inline void combine_weights(const InternodeCombineParams& params, uint32_t epoch,
                                       const InternodeCombineShared& shared) {
    const CombineParams& p = params.local;
    const Internode& b = params.between;
    const Network& net = b.network;
    int lane = threadIdx.x % 32, channel = blockIdx.x / 2, num_ranks = p.group.num_ranks;
    struct Share {
        int begin, end;
    };
    auto share = [&](int num_tokens) {
        int each = (num_tokens + b.num_channels - 1) / b.num_channels, begin = min(num_tokens, channel * each);
        return Share{begin, min(num_tokens, begin + each)};
    };
    // Sums of (token, k) j, j + 32, ... over this node, several asked for at once.
    auto sum_batch = [&](const NodeRows* rows, int j0, int end, float* sum) {
#pragma unroll
        for (int i = 0; i < kWeightBatch; ++i) {
            int j = min(j0 + i * 32, end - 1);
            sum[i] = shared.peers.sum_weights(rows[j / p.topk].row, num_ranks, j % p.topk);
        }
    };
    for (int i = 1; i < net.num_nodes; ++i) {
        int node = (net.node + i) % net.num_nodes;
        Share tokens = share(at<const int32_t>(b.source_tokens)[node]);
        if (tokens.begin == tokens.end) continue;
        auto sums = at<float>(Net::outgoing(net, b.records, node));
        for (int j = tokens.begin * p.topk + lane; j < tokens.end * p.topk; j += 32 * kWeightBatch) {
            float sum[kWeightBatch];
            sum_batch(node_rows(b.forward_rows, b.max_tokens, node, 0), j, tokens.end * p.topk, sum);
#pragma unroll
            for (int v = 0; v < kWeightBatch; ++v)
                if (j + v * 32 < tokens.end * p.topk) sums[j + v * 32] = sum[v];
        }
        fence_sys();
        __syncwarp();
        // release; pairs with the acquire below
        Net::put_signal(net, lane == 0, node, b.records, static_cast<uint64_t>(tokens.begin) * p.topk * sizeof(float),
                        static_cast<uint64_t>(tokens.end - tokens.begin) * p.topk * sizeof(float), b.record_flags,
                        channel * sizeof(uint64_t), epoch);
    }
    Share tokens = share(p.num_tokens);
    bool ok = true;
    for (int n = lane; n < net.num_nodes && tokens.begin < tokens.end; n += 32)
        if (n != net.node) ok = ok && await_record(b, p.group, epoch, n, channel);
    if (!__all_sync(~0u, ok)) return;
    for (int j = tokens.begin * p.topk + lane; j < tokens.end * p.topk; j += 32 * kWeightBatch) {
        float sum[kWeightBatch];
        sum_batch(node_rows(b.own_rows, p.num_tokens, net.node, 0), j, tokens.end * p.topk, sum);
        for (int n = 0; n < net.num_nodes; ++n) {
            if (n == net.node) continue;
#pragma unroll
            for (int v = 0; v < kWeightBatch; ++v) {
                int i = min(j + v * 32, tokens.end * p.topk - 1);
                bool comes = load_rows(node_rows(b.own_rows, p.num_tokens, n, i / p.topk)).go_anywhere();
                sum[v] += comes ? at<const float>(incoming(net, b.records, n))[i] : 0;
            }
        }
#pragma unroll
        for (int v = 0; v < kWeightBatch; ++v)
            if (j + v * 32 < tokens.end * p.topk) at<float>(p.out_weights)[j + v * 32] = sum[v];
    }
}

// What this rank says of a combine. All threads of the leader.
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
        words[threadIdx.x] = handle_word(p.handle_epoch, threadIdx.x, value);
    }
    fence_sys();  // x, written by earlier launches, comes before the words that offer it
    __syncthreads();
}

template <class Net>
__device__ inline void internode_combine(const InternodeCombineParams& params) {
    extern __shared__ __align__(128) uint8_t slots[];
    __shared__ InternodeCombineShared shared;
    const CombineParams& p = params.local;
    const Internode& b = params.between;
    const Group& g = p.group;
    LocalState* state = state_of(g);
    uint32_t epoch = state->epoch + 1;
    bool for_owners = blockIdx.x % 2 == 1;
    uint32_t num_slots = p.num_slots - (for_owners ? kSumStages : 0);
    uint8_t* stages = slots + num_slots * p.chunk_bytes;
    Consumers consumers{kInternodeServiceWarps * 32};
    init_slots(shared.ring, num_slots, consumers);
    if (threadIdx.x < kSumStages) {
        barrier_init(&shared.sum_full[threadIdx.x], consumers.count());
        barrier_init(&shared.sum_empty[threadIdx.x], 1);
        barrier_init_fence();
    }
    uint8_t* rings = slots + p.rings_offset;
    for (int i = threadIdx.x; i < b.network.num_nodes * kRingStateBytes / 4; i += blockDim.x)
        reinterpret_cast<uint32_t*>(rings)[i] = 0;
    if (threadIdx.x == 0) shared.state = 0;
    if (blockIdx.x == 0) {
        __shared__ int32_t words[kHeaderWords];
        combine_words(params, words);
        announce<Net>(b, g, epoch, words, nullptr);
        if (threadIdx.x == 0) plan_of(b)->ends_together = 0;
        give_verdict(b, epoch, open_call(b, g, epoch).code);
    }
    bool ok = await_verdict(b, g, epoch);
    if (ok && threadIdx.x < g.num_ranks)
        shared.peers.learn(g, threadIdx.x,
                           [&](int word) { return header_word(g, g.first_rank + threadIdx.x, word, epoch); });
    __syncthreads();
    auto heads = reinterpret_cast<RingHead*>(rings);
    int warp = threadIdx.x / 32;
    if (ok && warp == 0) {
        fence_async_proxy();  // rows that peers wrote by ordinary stores, now loaded by the copy engine
        SlotWriter writer{p, shared, slots, num_slots};
        if (for_owners)
            load_for_peers(params, epoch, writer);
        else
            load_own(params, epoch, writer, heads);
    } else if (ok && warp == 1) {
        if (for_owners)
            tell_peers<Net, true>(b, epoch, rings, &shared.state, 1);
        else
            tell_peers<Net, false>(b, epoch, rings, &shared.state, 1);
    } else if (ok && warp == 2) {
        if (for_owners)
            put_sums<Net>(params, epoch, shared, stages, reinterpret_cast<RingTail*>(rings));
        else if (p.topk > 0 && p.out_weights)
            combine_weights<Net>(params, epoch, shared);
    } else if (ok && for_owners) {
        sum_chunks(p, shared.ring, slots, num_slots, consumers, RingSink{p, shared, stages, consumers});
    } else if (ok) {
        sum_chunks(p, shared.ring, slots, num_slots, consumers, OwnerSink(p, shared, heads, consumers));
    }
    if (arrive_last(&state->exit_arrivals)) {
        finish_everywhere<Net>(b, g, epoch, ok);
    }
}

}  // namespace deepep::normal
