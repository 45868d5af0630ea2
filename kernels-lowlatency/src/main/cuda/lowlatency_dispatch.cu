// Low-latency dispatch: both halves in one launch, or each in one of its own.
//
// Each rank launches it once per call (and half), in the same order on all ranks; launches of a rank run one after the
// other. Send half: tokens, cast to fp8 on the way or as they are, into the slots [epoch parity][rank][i] of the
// receivers, and a header. Receive half: headers and rows of all sources into the outputs, packed per expert.
//
// Writes: headers, rows and flags in the heaps of all ranks, slots that their owners have acknowledged; outputs; the
// bank; RankState. Reads: x, top-k, what peers have written into this rank's heap. A top-k index out of range, formats
// that differ and an expert with too many rows become faults of all ranks; no output row is of use then, and the next
// call works.
//
// Launch: any number of blocks, resident together with those of the other ranks on the GPU; kThreads threads. Dynamic
// shared memory: u32 [num_experts]; at counts_shared_offset i32 [num_ranks * (kHeaderCounts + 2 * local experts + 1)] or
// u32 [num_experts], what is more; at scales_shared_offset f32 [hidden / 128]. Outputs are 16-byte aligned; x may start
// anywhere, but is read fastest from 16-byte boundaries.
#include "dispatch_receive.cuh"
#include "dispatch_send.cuh"

namespace deepep::lowlatency {

template <bool kCast>
__device__ __forceinline__ void dispatch(const DispatchParams& p) {
    extern __shared__ __align__(16) uint8_t dynamic_shared[];
    __shared__ Call call;
    __shared__ TokenCounts own, all;
    __shared__ TokenPlan plan;
    __shared__ ReceiveShared received;
    const Group& g = p.group;
    auto bank = at<Bank>(p.bank);
    bool sends = g.phases & kSend;
    if (sends && threadIdx.x < kDispatchSenders) {
        auto scales = reinterpret_cast<float*>(dynamic_shared + p.scales_shared_offset);
        send_tokens<kCast>(p, call, reinterpret_cast<uint32_t*>(dynamic_shared), own, plan, scales);
        return;
    }
    DispatchReceivers team(g);
    Opening opening = begin_open(g, kDispatch, &bank->epoch);
    bool announces = sends && is_reporting_block();
    auto hist = reinterpret_cast<uint32_t*>(dynamic_shared + p.counts_shared_offset);
    if (announces) {
        clear_counts(p, team.thread, kAnnouncers, hist, all);
        team.sync();
        count_tokens(p, 0, p.num_tokens, team.thread, kAnnouncers, hist, all);
    }
    finish_open(g, kDispatch, opening, call);
    __syncthreads();
    if (threadIdx.x == kStateThread && advance_epoch(g, call) && sends) {
        bank->epoch = call.epoch;
        bank->next_other = call.next_other;
        bank->reached = call.reached;
    }
    if (announces) announce_dispatch(p, call, all, hist, team.thread);
    if (!(g.phases & kReceive)) return;
    CountTable table(p, dynamic_shared);
    bool ok = place_sources(p, call, team, table, received);
    if (ok) receive_rows<kCast>(p, call, team, table);
    if (!is_reporting_block()) return;
    bool good = received.ok && check_room(p, call, team, received);
    report_counts(p, call, team, table, received, good);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_lowlatency_dispatch_bf16(const __grid_constant__ DispatchParams p) {
    dispatch<false>(p);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_lowlatency_dispatch_fp8(const __grid_constant__ DispatchParams p) {
    dispatch<true>(p);
}

}  // namespace deepep::lowlatency
