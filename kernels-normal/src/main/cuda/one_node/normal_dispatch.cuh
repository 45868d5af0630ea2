// Normal-mode dispatch on one node, in one launch.
//
// Each rank launches it once per call, in the same order on all ranks. Phases: lay_out_tokens (all blocks count) ->
// announce_dispatch (by the block that counted last) -> judge_dispatch (all blocks wait for all headers) -> RowSender
// and send_metadata -> write_outputs -> completion flags, exchanged by the block that leaves last.
//
// Writes: rows and metadata in the heaps of all ranks, at row sum(counts of lower ranks) + (number among this rank's
// tokens to that receiver); token_rows; outputs; the status block; handle_epoch, for the calls that use token_rows.
// Reads: x, scales, top-k or is_token_in_rank (or both, which must agree), or token_rows when cached. When the kernel
// ends, this rank's rows are complete.
// After a fault seen by all ranks (bad expert, headers that differ, too many rows) no row has been written anywhere.
//
// Launch: any number of blocks up to 256, all of them resident together, kThreads threads each. Dynamic shared memory:
// u32 [num_experts]; at bases_offset i32 [number of blocks][kMaxRanks]; at stages_offset num_copy_warps * 2 *
// row_stride. The outputs topk_idx and topk_weights are 16-byte aligned.
#pragma once

#include "../shared/dispatch_layout.cuh"
#include "../shared/dispatch_notify.cuh"
#include "../shared/dispatch_send.cuh"
#include "deepep/block.cuh"

namespace deepep::normal {

__device__ __forceinline__ void dispatch(const DispatchParams& p) {
    await_previous_launch();
    uint8_t* dynamic = dynamic_shared();
    __shared__ HeaderTable table;
    __shared__ LayoutShared layout;
    __shared__ uint64_t barriers[kWarps][kDispatchStages];
    __shared__ uint8_t lists[kWarps][32];
    LocalState* state = state_of(p.group);
    uint32_t epoch = epoch_after(state->epoch);
    OneNode node{p.group, MaskedRanks::of(p.group)};
    int warp = threadIdx.x / 32, meta_warp = warp - p.num_copy_warps, num_meta_warps = kWarps - p.num_copy_warps;
    auto bases = reinterpret_cast<int32_t (*)[kMaxRanks]>(dynamic + p.bases_offset);
    int stage = (meta_warp < 0 ? warp : 0) * kDispatchStages * p.row_stride;
    if (meta_warp < 0)
        prefetch_row<kDispatchStages>(p, first_token(), dynamic + p.stages_offset + stage, barriers[warp]);

    bool announces = p.cached && blockIdx.x == 0;
    if (!p.cached) {
        lay_out_tokens(p, layout, reinterpret_cast<uint32_t*>(dynamic), node.masked);
        announces = arrive_last(&state->layout_arrivals);
    }
    if (announces) announce_dispatch(p, node, epoch, table);
    judge_dispatch(p, node, epoch, table);
    bool ok = table.verdict == kOk;
    if (ok) place_blocks(p, table.row_base, bases);

    if (meta_warp < 0) {
        send_rows(p, bases, ok, dynamic + p.stages_offset + stage, barriers[warp]);
    } else if (!p.cached) {
        if (blockIdx.x == gridDim.x - 1 && meta_warp == num_meta_warps - 1) {
            int num_ranks = p.group.num_ranks;
            report_counts(p, node, epoch, table.verdict, table.num_rows,
                          {num_ranks, kFirstCount + p.group.rank, first_expert_word(p.group),
                           p.num_experts / num_ranks, !kIsWide});
        }
        if (ok) send_metadata(p, bases[blockIdx.x], lists[warp], meta_warp, num_meta_warps);
        if (!ok || exchange_metadata(p, node, epoch, num_meta_warps * 32, meta_warp == 0)) {
            int thread = (blockIdx.x * num_meta_warps + meta_warp) * 32 + threadIdx.x % 32;
            write_outputs(p, table.num_rows, thread, gridDim.x * num_meta_warps * 32);
        }
    }
    if (arrive_last(&state->exit_arrivals)) {
        uint32_t code = finish_call(node, epoch, ok);
        if (threadIdx.x == 0 && !p.cached)
            *at<uint64_t>(p.handle_epoch) = code == kOk ? pack_word(epoch, state->masked) : 0;
    }
}

}  // namespace deepep::normal
