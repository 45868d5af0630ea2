// Low-latency combine: both halves in one launch, or each in one of its own.
//
// Each rank launches it once per call (and half), in the same order on all ranks; launches of a rank run one after the
// other. Send half: the rows that this rank's experts computed, as bf16, fp8 or LogFMT, into the slots
// [epoch parity][rank][token][selection] of the tokens' owners, and a header. Receive half: the weighted sums of this
// rank's tokens. The reduced kernels send a row for each token that this rank holds experts of: the sum of these rows,
// as the dispatch weighted them, rounded to bf16, in the slot of the first; owners add what ranks have summed.
//
// Writes: headers, rows and flags in the heaps of all ranks, slots that their owners have acknowledged; out; RankState.
// Reads: x, the bank of the dispatch, top-k and weights, what peers have written into this rank's heap. topk_idx must
// name what was dispatched, less what is to be left out (-1); reduced, nothing may be. A difference becomes a fault of
// all ranks, and the next call works; so does a dispatch that failed, or whose bank holds another one.
//
// Launch: overlapping the previous one; any number of blocks, resident together with those of the other ranks on the
// GPU; kThreads threads. Dynamic shared memory: for each of kSendTeams * kStoreWarps warps kLogStageBytes for LogFMT,
// kReduceStageBytes in the reduced kernels.
// x and out may start anywhere, but are used fastest on 16-byte boundaries.
#include "combine_packs.cuh"
#include "combine_receive.cuh"
#include "combine_send.cuh"
#include "open.cuh"
#include "deepep/block.cuh"

namespace deepep::lowlatency {

constexpr int kAnnounceWarps = (kThreads - kCombineSenders) / 32;  // the receivers of a block that sends too

template <Wire kWire, bool kReduce>
__device__ __forceinline__ void combine(const CombineParams& p) {
    await_previous_launch();
    uint8_t* stages = dynamic_shared();
    __shared__ Call call;
    __shared__ SendShared sent;
    __shared__ CollectShared collected;
    __shared__ uint32_t bad[kAnnounceWarps];
    const Group& g = p.group;
    bool sends = g.phases & kSend, receives = g.phases & kReceive;
    int first = 0;                   // of the block's sums, the warp's first
    Selected selected = {-1, 0, 0};  // of its token
    auto token_of_first = [&] { return Sum(num_summed<kWire, kReduce>(p), first).token; };
    if (sends && threadIdx.x < kCombineSenders) {
        send_home<kWire, kReduce>(p, call, sent, stages);
        if (!receives || is_flag_warp() || !collected.has_more) return;  // the flag warp is busy longest
        first = take_sum(collected);
        if (token_of_first() >= p.num_tokens) return;
        selected = load_selected<kReduce>(p, token_of_first());
        if (!sums_packs<kWire, kReduce>(p)) barrier_wait(&collected.heard, 0);  // acquire; pairs with collect_senders
    } else {
        Receivers team(g);
        Run* noted = &state_of(g)->runs[kCombine][p.run];
        Opening opening = begin_open(g, kCombine, noted);
        auto bank = at<const Bank>(p.bank);
        Run run = sends ? Run{0, 0, {}, bank->epoch, {bank->reached[0]}} : *noted;
        if (kIsWide && sends) store_set(run.expected, load_set(bank->reached));
        bool announces = sends && blockIdx.x == gridDim.x - 1, publishes = threadIdx.x / 32 == kPublishWarp;
        if (announces) {
            uint32_t warp_bad = find_bad_selection<kReduce>(p, team.thread, team.num_threads);
            if (team.thread % 32 == 0) bad[team.warp()] = warp_bad;
            if constexpr (kHasNetwork) keep_items(p, team.thread, team.num_threads);
        }
        int per_token = num_summed<kWire, kReduce>(p);
        if (team.thread == 0)
            collected.init(p, load_set(bank->present), load_set(run.expected), team.num_warps(), per_token);
        if constexpr (kPacks<kWire>) {
            uint32_t takers = team.warp() == kCollectWarp ? pack_takers<kReduce>(bank) : 0;
            if (team.thread == 0) sent.pack_takers = takers;
        }
        first = team.warp() - kPacks<kWire>;  // of packs, the collecting warp takes the last
        if (first < 0) first += team.num_warps();
        if (receives && kHasOneNode) selected = load_selected<kReduce>(p, token_of_first());
        finish_open(g, kCombine, opening, call);
        __syncthreads();
        run.epoch = call.epoch;
        run.next_other = call.next_other;
        if (publishes) publish(g, call, opening);
        if (announces && team.warp() == kCollectWarp)
            announce_combine(
                p, call, run, collected.present, __reduce_min_sync(~0u, bad[team.thread % kAnnounceWarps]),
                [&](int rank) { return SentRows<kWire, kReduce>::num_items(p, rank); });
        if (receives) {
            if (team.warp() == kCollectWarp) collect_senders(p, call, run, collected);
            if (!sums_packs<kWire, kReduce>(p)) team.sync();
            if (team.thread == 0) allow_next(g);
        }
        if (publishes && advance_epoch(g, call) && sends) {
            *noted = run;
            store_set(noted->reached, call.reached);
        }
    }
    // Beside what several nodes need, there are no registers to keep it in.
    if (receives && !kHasOneNode) selected = load_selected<kReduce>(p, token_of_first());
    if (receives) sum_tokens<kWire, kReduce>(p, call, first, selected, collected);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_lowlatency_combine_bf16(const __grid_constant__ CombineParams p) {
    combine<Wire::kBf16, false>(p);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_lowlatency_combine_fp8(const __grid_constant__ CombineParams p) {
    combine<Wire::kFp8, false>(p);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_lowlatency_combine_logfmt(const __grid_constant__ CombineParams p) {
    combine<Wire::kLogFmt, false>(p);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_lowlatency_combine_reduced_bf16(const __grid_constant__ CombineParams p) {
    combine<Wire::kBf16, true>(p);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_lowlatency_combine_reduced_fp8(const __grid_constant__ CombineParams p) {
    combine<Wire::kFp8, true>(p);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    deepep_lowlatency_combine_reduced_logfmt(const __grid_constant__ CombineParams p) {
    combine<Wire::kLogFmt, true>(p);
}

}  // namespace deepep::lowlatency
