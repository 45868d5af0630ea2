// Normal-mode dispatch across nodes, in one launch.
//
// Each rank launches it once per call, in the same order on all ranks. Phases: count_tokens (all blocks) ->
// lead_dispatch (the leader: the block that counted last; headers of all ranks) -> await_verdict (all blocks) -> rows
// by the copy warps, of which half send_tokens and half forward_tokens; one warp for each half tells peers of them;
// records by the others -> write_outputs -> completion flags within the node, exchanged by the block that leaves last.
//
// Writes: rows and metadata in the heaps of this node's ranks, rows and records at the peers of other nodes; own_rows,
// forward_rows, source_tokens, handle_epoch, unless cached; outputs; the status block. Reads: x, scales, top-k or
// is_token_in_rank, or the routing when cached; rows and records of the peers. When the kernel ends, this rank's rows
// are complete: in order of source rank and token, at the same place on every run.
// After a fault seen by all ranks (bad expert, headers that differ, too many rows) no row has been written anywhere.
//
// While ranks are masked, others take the places of peers: see internode_routes.cuh.
//
// Launch: any number of blocks up to 256, all of them resident together, kThreads threads each; num_copy_warps is even,
// num_channels half of it for each block. Dynamic shared memory: u32 [num_experts]; at bases_offset kRingStateBytes for
// each cell of rows and copy warp; at stages_offset num_copy_warps * 3 * row_stride. Outputs topk_idx and topk_weights
// are 16-byte aligned.
#pragma once

#include "deepep/block.cuh"
#include "internode_rows.cuh"

namespace deepep::normal {

template <class Net>
__device__ inline void internode_dispatch(const InternodeDispatchParams& params) {
    await_previous_launch();
    uint8_t* dynamic = dynamic_shared();
    __shared__ CountShared counts;
    __shared__ uint64_t barriers[kWarps][kRowStages];
    __shared__ uint8_t lists[kWarps][32];
    __shared__ uint32_t states[kWarps];
    const DispatchParams& p = params.local;
    const Internode& b = params.between;
    const Group& g = p.group;
    Nodes<Net> nodes{g, b};
    LocalState* state = state_of(g);
    uint32_t epoch = epoch_after(state->epoch);
    int warp = threadIdx.x / 32, num_senders = p.num_copy_warps / 2;
    int meta_warp = warp - p.num_copy_warps - kTellers, num_meta_warps = kWarps - p.num_copy_warps - kTellers;
    bool sends = warp < num_senders, copies = warp < p.num_copy_warps;
    uint8_t* stages = dynamic + p.stages_offset + (copies ? warp : 0) * kRowStages * p.row_stride;
    // Rings that senders fill, by node, and then those that forwarders empty, by home.
    uint8_t* rings = dynamic + p.bases_offset;
    int tail_bytes = Forwarders<Net>::size(b.network) * kRingStateBytes;  // of one warp
    int head_bytes = Homes<Net>::size(b.network) * kRingStateBytes;
    uint8_t* heads = rings + num_senders * tail_bytes;
    for (int i = threadIdx.x; i < num_senders * (tail_bytes + head_bytes) / 4; i += kThreads)
        reinterpret_cast<uint32_t*>(rings)[i] = 0;
    if (threadIdx.x < kWarps) states[threadIdx.x] = 0;
    if (copies) prefetch_row<kRowStages>(p, sends ? channel_of_warp(warp) : p.num_tokens, stages, barriers[warp]);

    bool leads = p.cached && blockIdx.x == 0;
    if (!p.cached) {
        count_tokens<Net>(params, counts, reinterpret_cast<uint32_t*>(dynamic));
        leads = arrive_last(&state->layout_arrivals);
    }
    if (leads) lead_dispatch<Net>(params, epoch);
    bool ok = await_verdict(b, g, epoch);

    if (copies) {
        if (sends)
            send_tokens<Net>(params, epoch, ok, reinterpret_cast<RingTail*>(rings + warp * tail_bytes), &states[warp],
                             stages, barriers[warp]);
        else if (ok)
            forward_tokens<Net>(params, epoch, channel_of_warp(warp - num_senders),
                                reinterpret_cast<RingHead*>(heads + (warp - num_senders) * head_bytes), stages,
                                barriers[warp]);
        __syncwarp();
        if (threadIdx.x % 32 == 0) note_more(&states[warp], kFinished);
    } else if (meta_warp < 0 && ok) {
        BlockRings block_rings{static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), num_senders};
        if (meta_warp == -1)
            tell_peers<Forwarders<Net>, true>(b, epoch, block_rings, rings, states, num_senders);
        else
            tell_peers<Homes<Net>, false>(b, epoch, block_rings, heads, states + num_senders, num_senders);
    } else if (meta_warp >= 0 && !p.cached) {
        if (leads && meta_warp == num_meta_warps - 1)
            report_counts(p, nodes, epoch, word_value(plan_of(b)->verdict), plan_of(b)->num_rows,
                          {b.num_ranks, kHeaderWords + my_rank(g), kHeaderWords + b.num_ranks,
                           p.num_experts / b.num_ranks, false});
        if (ok) {
            send_records<Net>(params, epoch, lists[warp], meta_warp, num_meta_warps);
            forward_records<Net>(params, epoch, lists[warp], meta_warp, num_meta_warps);
        }
        if (!ok || exchange_metadata(p, nodes, epoch, num_meta_warps * 32, meta_warp == 0)) {
            int thread = (blockIdx.x * num_meta_warps + meta_warp) * 32 + threadIdx.x % 32;
            // Without a verdict, the plan may be that of an earlier call.
            write_outputs(p, ok ? plan_of(b)->num_rows : 0, thread, gridDim.x * num_meta_warps * 32);
        }
    }
    if (arrive_last(&state->exit_arrivals)) {
        uint32_t code = finish_everywhere(nodes, epoch, ok);
        if (threadIdx.x == 0 && !p.cached)
            *at<uint64_t>(p.handle_epoch) = code == kOk ? pack_word(epoch, Routes<Net>::word(p.group)) : 0;
    }
}

}  // namespace deepep::normal
