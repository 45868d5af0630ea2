// Low-latency dispatch: both halves in one launch, or each in one of its own.
//
// Each rank launches it once per call (and half), in the same order on all ranks; launches of a rank run one after the
// other. Send half: tokens, cast to fp8 on the way or as they are, into the slots [epoch parity][rank][i] of the
// receivers, and a header; with topk_weights also the tokens' weights. A copy of topk_idx stays for the combine, which
// must be of the same. Receive half: headers and rows of all sources into the outputs, packed per expert.
//
// The host decides which bank a dispatch takes and knows nothing of replays. So a receive half of its own may find that
// a replay has taken the bank: that is a fault of this rank, what the bank holds stays, and the slots become free.
//
// Writes: headers, rows and flags in the heaps of all ranks, slots that their owners have acknowledged; outputs; the
// bank; RankState. Reads: x, top-k, what peers have written into this rank's heap. A top-k index out of range, formats
// that differ and an expert that a rank selects more than max_tokens times become faults of all ranks; no output row is
// of use then, and the next call works.
//
// Launch: overlapping the previous one; any number of blocks, resident together with those of the other ranks on the
// GPU; kThreads threads. Dynamic shared memory: u32 [num_experts]; at counts_shared_offset a CountTable or u32
// [num_experts], what is more; at row_shared_offset a row's elements and scales.
// Outputs are 16-byte aligned; x may start anywhere, but is read fastest from 16-byte boundaries.
#include "deepep/block.cuh"
#include "dispatch_receive.cuh"
#include "dispatch_send.cuh"
#include "open.cuh"

namespace deepep::lowlatency {

template <bool kCast>
__device__ __forceinline__ void dispatch(const DispatchParams& p) {
    await_previous_launch();
    uint8_t* dynamic = dynamic_shared();
    __shared__ Call call;
    __shared__ DispatchSendShared send;
    __shared__ ReceiveShared received;
    const Group& g = p.group;
    bool sends = g.phases & kSend, receives = g.phases & kReceive;
    auto hist = reinterpret_cast<uint32_t*>(dynamic);
    CountTable table(p, dynamic);
    if (threadIdx.x < kDispatchSenders) {
        if (sends) {
            send_tokens<kCast>(p, call, hist, send, dynamic + p.row_shared_offset);
            if (is_courier()) return;  // it is busy longest
        } else {
            bool is_taken = at<const Bank>(p.bank)->sent != p.dispatch;
            __syncthreads();  // the call is open
            if (is_taken) return;
        }
    } else {
        Placers team;
        auto bank = at<Bank>(p.bank);
        Run* run = &state_of(g)->runs[kDispatch][p.run];
        auto all_hist = reinterpret_cast<uint32_t*>(dynamic + p.counts_shared_offset);
        Opening opening = begin_open(g, kDispatch, run);
        uint64_t held = sends ? p.dispatch : bank->sent;
        if (threadIdx.x == kOpenWarp * 32) received.init();
        if (sends && team.thread < kPlanners) plan_first(p, team.thread, hist, all_hist, send);
        if (sends && team.thread >= kPlanners) keep_step_with_planners();
        finish_open(g, kDispatch, opening, call);
        if (sends) {  // the call is open, for the senders, and for the placers
            if (team.thread >= kPlanners) team_barrier(kBarrierOpen, kOpenThreads);
            team.sync();
        } else {
            __syncthreads();
        }
        bool publishes = threadIdx.x / 32 == kPublishWarp;
        if (publishes) publish(g, call, opening);
        if (sends && is_reporting_block()) {
            announce_dispatch(p, call, send.all, all_hist, team.thread, team.num_threads);
            if (kHasNetwork && team.warp() == 0) close_batches(p, call, send.all.rows);
            team.sync();  // all_hist has been read
        }
        bool is_taken = held != p.dispatch;
        if (receives && !is_taken) place_sources(p, call, team, table, received);
        if (publishes && advance_epoch(g, call) && sends) {
            bank->epoch = call.epoch;
            bank->sent = p.dispatch;
            if (!receives) bank->received = 0;
            store_set(bank->reached, call.reached);
            run->epoch = call.epoch;
            run->next_other = call.next_other;
            store_set(run->reached, call.reached);
        }
        if (is_taken) {
            if (is_reporting_block() && team.thread == 0) record_taken(g, call);
            return;
        }
        if (receives) report_counts(p, team, table, received);
    }
    if (receives) receive_rows<kCast>(p, call, table, received);
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
