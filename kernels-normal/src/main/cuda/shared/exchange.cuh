// The header exchange that opens every call, and the fault record that closes a failed one.
//
// A rank writes one header to each peer, as 64-bit words that carry the epoch beside the value, so a word needs no
// flag and no second trip. Reading every peer's header is also the barrier that lets rows of the last call be
// overwritten: a peer writes its header in stream order, after its readers of those rows.
// Headers alternate between two slots: a peer may open call e + 1 while this rank still reads its header of e, but
// not e + 2, because that needs this rank's header of e + 1.
#pragma once

#include "deepep/memory.cuh"
#include "deepep/status.cuh"
#include "deepep/wait.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// Of the values of this lane and those before it. All lanes.
__device__ inline int32_t inclusive_sum(int32_t value) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        int32_t before = __shfl_up_sync(~0u, value, step);
        if (threadIdx.x % 32 >= step) value += before;
    }
    return value;
}

__device__ __forceinline__ LocalState* state_of(const Group& g) { return at<LocalState>(g.state); }

__device__ __forceinline__ uint64_t* header_slot(const Group& g, int holder, int source, uint32_t epoch) {
    return at<uint64_t>(g.heap[holder],
                        g.header_offset + (epoch & 1) * g.header_parity_stride + source * g.header_rank_stride);
}

__device__ __forceinline__ uint64_t* done_flag(const Group& g, int holder, int source) {
    return at<uint64_t>(g.heap[holder], g.done_flag_offset + static_cast<uint64_t>(source) * kFlagStrideBytes);
}

__device__ __forceinline__ uint64_t* meta_flag(const Group& g, int holder, int source) {
    return at<uint64_t>(g.heap[holder], g.meta_flag_offset + static_cast<uint64_t>(source) * kFlagStrideBytes);
}

// What peers learn of a fault beside its code: whom this rank gave up on, or the rows it needs and has room for.
__device__ inline uint64_t fault_detail(const Group& g, const Fault& fault) {
    switch (fault.code) {
        case kTooManyExpanded: return static_cast<uint64_t>(fault.expected) << 32 | static_cast<uint32_t>(fault.seen);
        case kPeerAborted: return fault.k;
        case kGridNotResident: return g.first_rank + g.rank;
        default: return fault.peer;
    }
}

// The first fault of an epoch is the one the host reads; the others are consequences. The host may have one of an
// earlier launch to read first.
__device__ inline void record_fault(const Group& g, uint32_t epoch, const Fault& fault) {
    LocalState* state = state_of(g);
    if (atomicExch(&state->claimed_epoch, epoch) == epoch) return;
    report_fault(g.status, fault);
    fence_sys();
    state->detail = fault_detail(g, fault);
    state->culprit = fault.rank;
    atomicExch(&state->code, fault.code);
}

__device__ inline Fault wait_fault(const Group& g, Code code, Phase phase, int peer, uint32_t epoch, uint64_t seen) {
    Fault fault;
    fault.code = code;
    fault.phase = phase;
    fault.rank = g.first_rank + g.rank;
    fault.peer = g.first_rank + peer;
    fault.expected = epoch;
    fault.seen = code == kOutOfStep ? word_epoch(seen) : static_cast<int64_t>(seen);
    return fault;
}

// The fault that a peer tells by a flag: its code, and `more`, which was written before the flag.
__device__ inline Fault told_fault(const Group& g, uint32_t code, const uint64_t* more, Phase phase, int peer,
                                   uint32_t epoch) {
    uint64_t detail = load_relaxed_sys(more);
    Fault fault = wait_fault(g, kPeerAborted, phase, peer, epoch, code);
    fault.k = static_cast<int32_t>(detail);
    if (code == kTooManyExpanded) {
        fault.code = kTooManyExpanded;
        fault.rank = static_cast<int32_t>(load_relaxed_sys(more + 1));
        fault.expected = detail >> 32;
        fault.seen = static_cast<uint32_t>(detail);
    }
    return fault;
}

// Tells observers, where there are any, how long this rank waited for another, counted among all. One thread of the
// launch for each.
__device__ __forceinline__ void tell_wait(const Group& g, WaitIdx wait, int rank, uint64_t begin_ns) {
    if (g.waits && rank != g.first_rank + g.rank)
        at<volatile uint64_t>(g.waits)[rank * kWaitsPerRank + wait] = now_ns() - begin_ns;
}

// Waits for a flag of every peer, one thread per peer. A peer that gave up says so in its flag.
__device__ inline bool wait_peers(const Group& g, uint32_t epoch, Phase phase, uint64_t deadline, int peer) {
    uint64_t seen;
    auto flag = phase == kPhaseMeta ? meta_flag(g, g.rank, peer) : done_flag(g, g.rank, peer);
    Code code = wait_word<true>(flag, epoch, deadline, seen);  // acquire; pairs with finish_call or exchange_metadata
    uint32_t told = word_value(seen);
    if (code == kOk && told == kOk) return true;
    record_fault(g, epoch,
                 code == kOk ? told_fault(g, told, done_flag(g, g.rank, peer) + 1, phase, peer, epoch)
                             : wait_fault(g, code, phase, peer, epoch, seen));
    return false;
}

// Every rank's header, and what a block makes of it. In shared memory.
struct HeaderTable {
    int32_t mine[kHeaderWords];
    int32_t of[kMaxRanks][kHeaderWords];
    uint32_t verdict;
    int32_t num_rows;             // dispatch: rows that this rank receives
    int32_t row_base[kMaxRanks];  // dispatch: first row of this rank's tokens at each destination
};

// Word `lane` of a header that reports a status; `value` where it is another word.
__device__ inline int32_t status_word(int lane, int32_t value, Code code, int token, int k, int64_t seen) {
    switch (lane) {
        case kStatus: return code;
        case kStatusToken: return token;
        case kStatusK: return k;
        case kStatusValueLow: return static_cast<int32_t>(seen);
        case kStatusValueHigh: return static_cast<int32_t>(seen >> 32);
        default: return value;
    }
}

// Word `lane` of a header of a call that uses the routing of an earlier dispatch: all ranks must use the same one.
__device__ inline int32_t handle_word(uint64_t handle_epoch, int lane, int32_t value) {
    uint64_t routed = *at<const uint64_t>(handle_epoch);
    if (lane == kHandleEpoch) return static_cast<int32_t>(routed);
    return routed == 0 ? status_word(lane, value, kHandleInvalid, -1, -1, 0) : value;
}

// Sends table.mine, and each receiver the counts of its own experts. All threads of one block; at least num_ranks
// warps. To peers the words announce nothing that this launch has written; to this rank's own blocks, the layout.
__device__ inline void send_header(const Group& g, uint32_t epoch, const HeaderTable& table,
                                   const uint32_t* expert_counts, int num_local_experts) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= g.num_ranks) return;
    uint64_t* there = header_slot(g, warp, g.rank, epoch);
    if (warp == g.rank) __threadfence();  // release; pairs with the acquire in read_headers
    store_relaxed_sys(there + lane, pack_word(epoch, table.mine[lane]));  // pairs with wait_word in read_headers
    for (int e = lane; e < num_local_experts; e += 32)                    // pairs with wait_word in report_counts
        store_relaxed_sys(there + kHeaderWords + e, pack_word(epoch, expert_counts[warp * num_local_experts + e]));
}

// Collects every rank's header, in each block for itself. All threads; at least num_ranks warps. A wait that fails is
// recorded and returns false.
__device__ inline bool read_headers(const Group& g, uint32_t epoch, HeaderTable& table) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    bool arrived = true;
    if (warp < g.num_ranks) {
        // A peer that timed out on us has left this epoch: its header stands, but its flag says so.
        uint64_t flag = load_acquire_sys(done_flag(g, g.rank, warp));
        uint64_t seen, begin = now_ns();
        Code code = wait_word<true>(header_slot(g, g.rank, warp, epoch) + lane, epoch, begin + g.timeout_ns, seen);
        if (blockIdx.x == 0 && lane == 0) tell_wait(g, kWaitForHeader, g.first_rank + warp, begin);
        table.of[warp][lane] = word_value(seen);
        int32_t ahead = static_cast<int32_t>(word_epoch(flag) - epoch);
        bool told = code == kOk && ahead == 0 && word_value(flag) != kOk;
        if (code == kOk && ahead > 0) {
            code = kOutOfStep;
            seen = flag;
        }
        arrived = code == kOk && !told;
        if (!arrived) {
            if (warp == g.rank) code = kGridNotResident;  // this rank's own header waits for all of its blocks
            record_fault(
                g, epoch,
                told ? told_fault(g, word_value(flag), done_flag(g, g.rank, warp) + 1, kPhaseHeader, warp, epoch)
                     : wait_fault(g, code, kPhaseHeader, warp, epoch, seen));
        }
    }
    return __syncthreads_and(arrived);
}

// What all ranks conclude alike from the headers: a rank's own status first, then words that differ from rank 0's.
// One warp; the result is the same in all lanes.
__device__ inline Fault judge_headers(const Group& g, const HeaderTable& table) {
    Fault fault;
    int lane = threadIdx.x % 32;
    uint32_t bad = __ballot_sync(~0u, lane < g.num_ranks && table.of[lane % kMaxRanks][kStatus] != kOk);
    if (bad != 0) {
        fault.rank = __ffs(bad) - 1;
        const int32_t* header = table.of[fault.rank];
        fault.code = header[kStatus];
        fault.token = header[kStatusToken];
        fault.k = header[kStatusK];
        fault.seen = static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(header[kStatusValueHigh])) << 32 |
                                          static_cast<uint32_t>(header[kStatusValueLow]));
        return fault;
    }
    for (int r = 1; r < g.num_ranks; ++r) {
        bad = __ballot_sync(~0u, lane < kNumCompared && table.of[r][lane] != table.of[0][lane]);
        if (bad == 0) continue;
        fault.code = kHeaderMismatch;
        fault.rank = r;
        fault.k = __ffs(bad) - 1;
        fault.expected = table.of[0][fault.k];
        fault.seen = table.of[r][fault.k];
        return fault;
    }
    return fault;
}

// All threads of a block; true in the block that arrives last, with what the others did before visible to it.
__device__ inline bool arrive_last(uint32_t* counter) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        last = add_acq_rel_gpu(counter, 1) == gridDim.x - 1;  // release by all, acquire by the last
        if (last) *counter = 0;
    }
    __syncthreads();
    return last;
}

// Faults that end a call on this rank alone, in the middle; the peers must not wait for it. Every other code is either
// concluded by all ranks from the same headers or concerns this rank's own output.
__device__ __forceinline__ bool is_abort(uint32_t code) {
    return code == kTimeout || code == kPeerAborted || code == kOutOfStep || code == kGridNotResident;
}

// What of this call peers learn by a flag, as far as all blocks that have arrived know.
__device__ __forceinline__ uint32_t told_code(const Group& g, uint32_t epoch) {
    const LocalState* state = state_of(g);
    uint32_t code = state->claimed_epoch == epoch ? state->code : kOk;
    return is_abort(code) || code == kTooManyExpanded ? code : kOk;
}

// What peers learn beside the code of a flag: two words, before the flag is released.
__device__ __forceinline__ void tell_more(const Group& g, uint64_t* more) {
    store_relaxed_sys(more, state_of(g)->detail);
    store_relaxed_sys(more + 1, state_of(g)->culprit);
}

// Tells every peer that this rank is done with the epoch (or has given up), and waits until all are, each at most
// timeout_ns. All threads of the block that leaves last. Nothing waits in a call that never got past the headers: there was no data, and a peer that
// is still on its way concludes the same from the headers or reads it in the done flag.
__device__ inline void exchange_done(const Group& g, uint32_t epoch, bool ok, uint64_t timeout_ns) {
    uint32_t code = told_code(g, epoch);
    if (threadIdx.x < g.num_ranks) {
        uint64_t* flag = done_flag(g, threadIdx.x, g.rank);
        if (code != kOk) tell_more(g, flag + 1);
        // release; pairs with the acquire in wait_peers. Rows, metadata and pulls of all blocks come before it.
        store_release_sys(flag, pack_word(epoch, code));
        if (ok && !is_abort(code)) {
            uint64_t begin = now_ns();
            wait_peers(g, epoch, kPhaseDone, begin + timeout_ns, threadIdx.x);
            tell_wait(g, kWaitForEnd, g.first_rank + threadIdx.x, begin);
        }
    }
    __syncthreads();
}

// Ends the call. All threads of the block that leaves last; thread 0 gets the call's code.
__device__ inline uint32_t close_call(const Group& g, uint32_t epoch) {
    LocalState* state = state_of(g);
    uint32_t code = kOk;
    if (threadIdx.x == 0) {
        state->epoch = epoch;
        state->cursor = 0;
        state->stage_cursor = 0;
        state->meta_arrivals = 0;  // a block that gave up has not counted
        code = state->claimed_epoch == epoch ? atomicExch(&state->code, kOk) : kOk;
        store_release_sys(&at<StatusBlock>(g.status)->done, pack_word(epoch, code));  // release; pairs with the host
    }
    return code;
}

__device__ inline uint32_t finish_call(const Group& g, uint32_t epoch, bool ok, uint64_t timeout_ns) {
    exchange_done(g, epoch, ok, timeout_ns);
    return close_call(g, epoch);
}

}  // namespace deepep::normal
