// Third phase of dispatch: rows and their metadata, straight to their places at the receivers; then the epilogue.
#pragma once

#include "deepep/block.cuh"
#include "deepep/bulk_copy.cuh"
#include "copy_unaligned.cuh"
#include "dispatch_layout.cuh"
#include "exchange.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// What of a row the copy engine can load: it needs multiples of 16 bytes throughout.
struct RowSource {
    bool bulk_x, bulk_scales;
};

__device__ __forceinline__ RowSource row_source(const DispatchParams& p) {
    uint64_t scale_bytes = static_cast<uint64_t>(p.num_scales) * 4;
    return {((p.x | p.x_stride | p.x_bytes) & 15) == 0,
            p.num_scales > 0 && p.scales_group_stride == 1 &&
                ((p.scales | p.scales_token_stride * 4 | scale_bytes | p.scales_offset) & 15) == 0};
}

// Starts loading token t into a stage that no store reads any more. All lanes of the warp.
__device__ inline void load_row(const DispatchParams& p, RowSource source, int t, uint8_t* stage, uint64_t* barrier,
                                int lane) {
    uint64_t x = p.x + static_cast<uint64_t>(t) * p.x_stride;
    uint64_t scales = p.scales + static_cast<uint64_t>(t) * p.scales_token_stride * 4;
    if (!source.bulk_x) copy_unaligned(stage, x, p.x_bytes, lane);
    if (p.num_scales > 0 && !source.bulk_scales) {
        auto to = reinterpret_cast<uint32_t*>(stage + p.scales_offset);
        for (int j = lane; j < p.num_scales; j += 32) to[j] = at<const uint32_t>(scales)[j * p.scales_group_stride];
    }
    if (!source.bulk_x || (p.num_scales > 0 && !source.bulk_scales)) fence_async_proxy();
    __syncwarp();
    if (lane != 0) return;
    uint32_t bytes = (source.bulk_x ? p.x_bytes : 0) + (source.bulk_scales ? p.num_scales * 4 : 0);
    barrier_arrive_expect(barrier, bytes);
    if (source.bulk_x) bulk_load(stage, at<const uint8_t>(x), p.x_bytes, barrier);
    if (source.bulk_scales) bulk_load(stage + p.scales_offset, at<const uint8_t>(scales), p.num_scales * 4, barrier);
}

// Tokens are handed out to the copy warps of all blocks in their order, because SMs do not get equal shares of the
// links. The first of a warp is fixed, so that it can be loaded before anything is known of the peers.
__device__ __forceinline__ int first_token() { return threadIdx.x / 32 * gridDim.x + blockIdx.x; }

// Prepares this warp's stages and starts loading token t, its first, if there is one.
template <int kStages>
__device__ inline void prefetch_row(const DispatchParams& p, int t, uint8_t* stages, uint64_t* barriers) {
    int lane = threadIdx.x % 32;
    if (lane == 0) {
        for (int i = 0; i < kStages; ++i) barrier_init(&barriers[i], 1);
        barrier_init_fence();
    }
    for (int s = 0; s < kStages; ++s)  // padding is sent too: let it be the same on every run
        for (int i = p.x_bytes + lane * 4; i < p.row_stride; i += 128)
            *reinterpret_cast<uint32_t*>(stages + s * p.row_stride + i) = 0;
    fence_async_proxy();
    __syncwarp();
    if (t < p.num_tokens) load_row(p, row_source(p), t, stages, &barriers[0], lane);
}

// A lane's receiver of a round: the ranks in order from the next one on.
__device__ __forceinline__ int place_of_lane(int round) { return round * 32 + threadIdx.x % 32; }

// Token t's order (its row when cached) at rank (rank + 1 + place) % num_ranks, or -1.
__device__ __forceinline__ int32_t token_order(const DispatchParams& p, int t, int dest, int place) {
    if (place >= p.group.num_ranks || t >= p.num_tokens) return -1;
    uint64_t orders = p.cached ? p.token_rows : p.token_order;
    return at<const int32_t>(orders)[static_cast<size_t>(t) * p.group.num_ranks + dest];
}

// A copy warp: one load of a token, one store to each rank it goes to; a token is loaded while the last one leaves.
// Unless ok nothing is sent, but shared memory must outlive the first load.
__device__ inline void send_rows(const DispatchParams& p, const int32_t (*bases)[kMaxRanks], bool ok, uint8_t* stages,
                                 uint64_t* barriers) {
    static_assert(kDispatchStages == 2);
    int lane = threadIdx.x % 32, t = first_token();
    if (!ok) {
        if (t < p.num_tokens) barrier_wait(&barriers[0], 0);
        return;
    }
    RowSource source = row_source(p);
    int dest[kRounds];
    uint64_t heap[kRounds];
    int32_t order[kRounds], next_order[kRounds];
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
        int place = place_of_lane(r);
        dest[r] = (p.group.rank + 1 + place) % p.group.num_ranks;
        heap[r] = place < p.group.num_ranks ? p.group.heap[dest[r]] + p.recv_offset : 0;
    }
    int num_first = p.num_copy_warps * gridDim.x, per_block = tokens_per_block(p.num_tokens);
    uint32_t* cursor = &state_of(p.group)->cursor;
    uint32_t ticket = lane == 0 ? add_relaxed_gpu(cursor, 1) : 0;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) order[r] = token_order(p, t, dest[r], place_of_lane(r));
    for (uint32_t i = 0; t < p.num_tokens; ++i) {
        int next = num_first + __shfl_sync(~0u, ticket, 0);
        if (lane == 0) ticket = add_relaxed_gpu(cursor, 1);
#pragma unroll
        for (int r = 0; r < kRounds; ++r) next_order[r] = token_order(p, next, dest[r], place_of_lane(r));
        bulk_wait_read<0>();
        __syncwarp();
        if (next < p.num_tokens) load_row(p, source, next, stages + (~i & 1) * p.row_stride, &barriers[~i & 1], lane);
        int32_t row[kRounds];
#pragma unroll
        for (int r = 0; r < kRounds; ++r) {
            row[r] = order[r] >= 0 ? order[r] + bases[t / per_block][dest[r]] : -1;
            if (!p.cached && place_of_lane(r) < p.group.num_ranks)
                at<int32_t>(p.token_rows)[static_cast<size_t>(t) * p.group.num_ranks + dest[r]] = row[r];
        }
        barrier_wait(&barriers[i & 1], i >> 1 & 1);
#pragma unroll
        for (int r = 0; r < kRounds; ++r)
            if (row[r] >= 0)
                bulk_store(at<uint8_t>(heap[r], static_cast<uint64_t>(row[r]) * p.row_stride),
                           stages + (i & 1) * p.row_stride, p.row_stride);
        bulk_commit();
        t = next;
#pragma unroll
        for (int r = 0; r < kRounds; ++r) order[r] = next_order[r];
    }
    bulk_wait_written();
    fence_async_proxy();
}

// A dispatching rank's own selections.
struct OwnSelections {
    const int64_t* topk_idx;
    const float* weights;  // or null
    int topk;

    __device__ int64_t expert(int t, int k) const { return topk_idx[static_cast<size_t>(t) * topk + k]; }
    __device__ float weight(int t, int k) const { return weights[static_cast<size_t>(t) * topk + k]; }
};

__device__ __forceinline__ OwnSelections own_selections(const DispatchParams& p) {
    return {at<const int64_t>(p.topk_idx), at<const float>(p.topk_weights), p.topk};
}

// Experts and weights of tokens first .. first + 31 to a rank of this node: a run, because rows of
// neighbours are neighbours there. row: of this lane's token, or -1. All lanes; list: 32 bytes of the warp's own.
template <class Selections>
__device__ inline void send_run(const DispatchParams& p, int dest, int experts_per_rank, int first, int row,
                                uint8_t* list, const Selections& selections) {
    int lane = threadIdx.x % 32;
    uint32_t senders = __ballot_sync(~0u, row >= 0);
    if (senders == 0) return;
    if (row >= 0) list[__popc(senders & ((1u << lane) - 1))] = lane;
    __syncwarp();
    uint64_t heap = p.group.heap[dest];
    int64_t first_expert = static_cast<int64_t>(p.group.first_rank + dest) * experts_per_rank;
    int first_row = __shfl_sync(~0u, row, __ffs(senders) - 1), count = __popc(senders);
    auto to_topk = at<int32_t>(heap, p.recv_topk_offset) + static_cast<size_t>(first_row) * p.topk;
    auto to_weights = at<float>(heap, p.recv_weights_offset) + static_cast<size_t>(first_row) * p.topk;
    for (int j = lane; j < count * p.topk; j += 32) {
        int t = first + list[j / p.topk], k = j % p.topk;
        int expert = static_cast<int>(selections.expert(t, k) - first_expert);
        bool local = expert >= 0 && expert < experts_per_rank;
        to_topk[j] = local ? expert : -1;
        if (p.topk_weights) to_weights[j] = local ? selections.weight(t, k) : 0.0f;
    }
    __syncwarp();
}

// The metadata of the block's tokens, by its meta warps.
__device__ inline void send_metadata(const DispatchParams& p, const int32_t* bases, uint8_t* list, int meta_warp,
                                     int num_meta_warps) {
    int lane = threadIdx.x % 32, num_ranks = p.group.num_ranks;
    TokenRange tokens = block_tokens(p.num_tokens);
    for (int first = tokens.begin + meta_warp * 32; first < tokens.end; first += num_meta_warps * 32)
        for (int i = 0; i < num_ranks; ++i) {
            int dest = (p.group.rank + 1 + i) % num_ranks, t = first + lane;
            size_t at_dest = static_cast<size_t>(t) * num_ranks + dest;
            int order = t < tokens.end ? at<const int32_t>(p.token_order)[at_dest] : -1;
            int row = order >= 0 ? order + bases[dest] : -1;
            send_run(p, dest, p.num_experts / num_ranks, first, row, list, own_selections(p));
        }
}

// Tells a peer that this rank's metadata is there, if this is the last block, and waits for the peer's. One thread.
template <class Others>
__device__ __forceinline__ bool exchange_meta_flags(const DispatchParams& p, const Others& others, uint32_t epoch,
                                                    int peer, bool last) {
    bool ok = true;
    if (peer < p.group.num_ranks && others.takes_part(peer)) {
        fence_sys();
        uint32_t code = told_code(p.group, epoch);
        if (last && is_abort(code)) tell_more(p.group, epoch, done_flag(p.group, peer, p.group.rank));
        // release; pairs with the acquire in wait_peers. The metadata of all blocks comes before it.
        if (last)
            store_release_sys(meta_flag(p.group, peer, p.group.rank), pack_word(epoch, is_abort(code) ? code : kOk));
        ok = wait_peers(others, epoch, kPhaseMeta, peer);
    }
    return ok;
}

// Waits for everybody's metadata. All meta warps of the block; false after a fault.
template <class Others>
__device__ inline bool exchange_metadata(const DispatchParams& p, const Others& others, uint32_t epoch,
                                         int num_meta_threads, bool first_warp) {
    __shared__ bool arrived;
    LocalState* state = state_of(p.group);
    int lane = threadIdx.x % 32;
    team_barrier(1, num_meta_threads);
    if (first_warp) {
        bool last = false;
        if (lane == 0) {
            fence_sys();
            last = add_acq_rel_gpu(&state->meta_arrivals, 1) == gridDim.x - 1;
            if (last) state->meta_arrivals = 0;
        }
        last = __shfl_sync(~0u, last, 0);
        __syncwarp();  // a shuffle hands over a value alone: what lane 0 has acquired is ordered by this
        bool ok = exchange_meta_flags(p, others, epoch, lane, last);
        if constexpr (kIsWide)
            for (int r = 1; r < kRounds; ++r) ok &= exchange_meta_flags(p, others, epoch, r * 32 + lane, last);
        ok = __all_sync(~0u, ok);
        if (lane == 0) arrived = ok;
    }
    team_barrier(1, num_meta_threads);
    return arrived;
}

// Received metadata to the consumer's tensors. thread of num_threads over the whole grid.
__device__ inline void write_outputs(const DispatchParams& p, int num_rows, int thread, int num_threads) {
    uint64_t heap = p.group.heap[p.group.rank];
    auto topk = at<const int32_t>(heap, p.recv_topk_offset);
    auto weights = at<const float>(heap, p.recv_weights_offset);
    auto out_topk = at<int64_t>(p.out_topk_idx);
    auto out_weights = at<float>(p.out_topk_weights);
    size_t count = static_cast<size_t>(num_rows) * p.topk, worst = static_cast<size_t>(p.num_worst_rows) * p.topk;
    // Four at a time: offsets are multiples of 128, and outputs of 16.
    for (size_t i = static_cast<size_t>(thread) * 4; i < count; i += static_cast<size_t>(num_threads) * 4) {
        if (i + 4 <= count) {
            int4 v = *reinterpret_cast<const int4*>(topk + i);
            if (out_weights)
                *reinterpret_cast<float4*>(out_weights + i) = *reinterpret_cast<const float4*>(weights + i);
            if (out_topk) {
                *reinterpret_cast<longlong2*>(out_topk + i) = make_longlong2(v.x, v.y);
                *reinterpret_cast<longlong2*>(out_topk + i + 2) = make_longlong2(v.z, v.w);
            }
        } else {
            for (size_t j = i; j < count; ++j) {
                if (out_topk) out_topk[j] = topk[j];
                if (out_weights) out_weights[j] = weights[j];
            }
        }
    }
    if (out_topk)
        for (size_t i = count + thread; i < worst; i += num_threads) out_topk[i] = -1;
}

}  // namespace deepep::normal
