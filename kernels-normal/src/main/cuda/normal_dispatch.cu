// Normal-mode dispatch on one node, in one launch.
//
// Each rank launches it once per call, in the same order on all ranks. Phases: lay_out_tokens (all blocks count) ->
// notify_dispatch (the block that counted last exchanges headers) -> send_rows and send_metadata -> write_outputs ->
// completion flags, exchanged by the block that leaves last.
//
// Writes: rows and metadata in the heaps of all ranks, at row sum(counts of lower ranks) + (number among this rank's
// tokens to that receiver); token_rows; outputs; the status block. Reads: x, scales, top-k or is_token_in_rank, or
// token_rows when cached. When the kernel ends, this rank's rows are complete.
// After a fault seen by all ranks (bad expert, headers that differ, too many rows) no row has been written anywhere.
//
// Launch: any number of blocks up to 256, all of them resident together, kThreads threads each. Dynamic shared memory:
// max(num_copy_warps * 2 * row_stride, num_experts * 4). The outputs topk_idx and topk_weights are 16-byte aligned.
#include "dispatch_layout.cuh"
#include "dispatch_notify.cuh"
#include "dispatch_send.cuh"

namespace deepep::normal {

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_normal_dispatch(const __grid_constant__ DispatchParams p) {
    extern __shared__ __align__(128) uint8_t dynamic_shared[];
    __shared__ HeaderTable table;
    __shared__ LayoutShared layout;
    __shared__ uint64_t barriers[kWarps][kDispatchStages];
    __shared__ uint8_t lists[kWarps][32];
    __shared__ int cursor;
    LocalState* state = state_of(p.group);
    uint32_t epoch = state->epoch + 1;
    int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < kWarps * kDispatchStages; ++i) barrier_init(&barriers[0][0] + i, 1);
        barrier_init_fence();
        cursor = block_tokens(p.num_tokens).begin;
    }
    bool leads = p.cached && blockIdx.x == 0;
    if (!p.cached) {
        lay_out_tokens(p, layout, reinterpret_cast<uint32_t*>(dynamic_shared));
        leads = arrive_last(&state->layout_arrivals);
    }
    if (leads) notify_dispatch(p, epoch, table);
    uint32_t verdict = wait_go(p.group, epoch);
    if (verdict == kOk && !p.cached) place_tokens(p, layout);

    int meta_warp = warp - p.num_copy_warps, num_meta_warps = kWarps - p.num_copy_warps;
    if (meta_warp < 0) {
        uint8_t* stages = dynamic_shared + static_cast<size_t>(warp) * kDispatchStages * p.row_stride;
        if (verdict == kOk) send_rows(p, &cursor, stages, barriers[warp]);
    } else {
        if (leads && meta_warp == 0) report_counts(p, epoch, table);
        bool sends = verdict == kOk && !p.cached;
        if (sends) send_metadata(p, lists[warp], meta_warp, num_meta_warps);
        bool ok = !sends || exchange_metadata(p, epoch, num_meta_warps * 32, meta_warp == 0);
        if (ok && !p.cached) {
            int thread = blockIdx.x * num_meta_warps * 32 + meta_warp * 32 + threadIdx.x % 32;
            write_outputs(p, verdict == kOk ? state->num_rows : 0, thread, gridDim.x * num_meta_warps * 32);
        }
    }
    if (arrive_last(&state->exit_arrivals)) finish_call(p.group, epoch, verdict);
}

}  // namespace deepep::normal
