// The header exchange that opens every call, and the fault record that closes a failed one.
//
// A rank writes one header to each peer, as 64-bit words that carry the epoch beside the value, so a word needs no
// flag and no second trip. Reading every peer's header is also the barrier that lets rows of the last call be
// overwritten: a peer writes its header in stream order, after its readers of those rows.
// Headers alternate between two slots: a peer may open call e + 1 while this rank still reads its header of e, but
// not e + 2, because that needs this rank's header of e + 1.
#pragma once

#include "waits.cuh"

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

__device__ __forceinline__ uint64_t* meta_flag(const Group& g, int holder, int source) {
    return at<uint64_t>(g.heap[holder], g.meta_flag_offset + static_cast<uint64_t>(source) * kFlagStrideBytes);
}

// Waits for a flag of every rank of the node, one thread for each. A rank that gave up says so in its flag.
template <class Others>
__device__ inline bool wait_peers(const Others& others, uint32_t epoch, Phase phase, int peer) {
    const Group& g = others.g;
    if (!others.takes_part(peer)) return true;
    uint64_t seen;
    int rank = g.first_rank + peer;
    const uint64_t* done = done_flag(g, g.rank, peer);
    // acquire; pairs with exchange_metadata or exchange_done
    bool came = phase == kPhaseMeta ? await_word(others, epoch, rank, phase, meta_flag(g, g.rank, peer), seen)
                                    : await_end(others, epoch, rank, done, seen);
    if (!came) return false;
    if (word_value(seen) == kOk) return true;
    record_fault(g, epoch, told_fault(g, seen, done, phase, rank));
    return false;
}

// Every rank's header, and what a block makes of it. In shared memory.
struct HeaderTable {
    int32_t mine[kOwnWords];
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
__device__ inline int32_t handle_word(uint64_t handle_epoch, int lane, int32_t value, uint32_t masked) {
    uint64_t routed = *at<const uint64_t>(handle_epoch);
    if (lane == kHandleEpoch) return static_cast<int32_t>(routed);
    if (routed == 0) return status_word(lane, value, kHandleInvalid, -1, -1, 0);
    return routed >> 32 != masked ? status_word(lane, value, kHandleMasked, -1, -1, 0) : value;
}

// What a rank's header has in a word, of this call or an earlier one. Relaxed, as what has come by relaxed stores
// orders no plain load.
__device__ __forceinline__ uint64_t heard_word(const Group& g, int rank, int word, uint32_t epoch) {
    return load_relaxed_sys(header_slot(g, g.rank, rank, epoch) + word);
}

// A word of a rank's header that has arrived.
__device__ __forceinline__ int32_t header_word(const Group& g, int rank, int word, uint32_t epoch) {
    return word_value(heard_word(g, rank, word, epoch));
}

// The first word of the counts of the receiver's experts.
__device__ __forceinline__ int first_expert_word(const Group& g) {
    return kIsWide ? kFirstCount + g.num_ranks : kHeaderWords;
}

// Sends table.mine to a peer, and the counts of its own experts. One warp. To peers the words announce nothing that
// this launch has written; to this rank's own blocks, the layout.
__device__ __forceinline__ void send_header_to(const OneNode& node, uint32_t epoch, const HeaderTable& table,
                                               const uint32_t* expert_counts, int num_local_experts, int peer) {
    const Group& g = node.g;
    int lane = threadIdx.x % 32;
    uint64_t* there = header_slot(g, peer, g.rank, epoch);
    if (peer == g.rank) __threadfence();  // release; pairs with the acquire in read_header
    store_relaxed_sys(there + lane, pack_word(epoch, table.mine[lane]));  // pairs with await_word in read_header
    if (kIsWide && table.mine[kOp] == kOpDispatch)
        for (int r = lane; r < g.num_ranks; r += 32)  // pairs with await_word in sum_rows
            store_relaxed_sys(there + kFirstCount + r, pack_word(epoch, table.mine[kFirstCount + r]));
    for (int e = lane; e < num_local_experts; e += 32)  // pairs with await_word in report_counts
        store_relaxed_sys(there + first_expert_word(g) + e,
                          pack_word(epoch, expert_counts[peer * num_local_experts + e]));
}

// Sends a header to every rank. All threads of one block; at least num_ranks warps, or a large node.
__device__ inline void send_header(const OneNode& node, uint32_t epoch, const HeaderTable& table,
                                   const uint32_t* expert_counts, int num_local_experts) {
    const Group& g = node.g;
    for (int peer = threadIdx.x / 32; peer < g.num_ranks; peer += blockDim.x / 32) {
        if (node.takes_part(peer)) send_header_to(node, epoch, table, expert_counts, num_local_experts, peer);
        if (!kIsWide) return;
    }
}

// A peer's header, which a warp waits for. False: it did not come, which is recorded.
__device__ __forceinline__ bool read_header(const OneNode& node, uint32_t epoch, HeaderTable& table, int peer) {
    const Group& g = node.g;
    int lane = threadIdx.x % 32;
    Fault fault;
    // A peer that timed out on us has left this epoch: its header stands, but its flag says so.
    bool left = peer != g.rank && neighbour_left(g, epoch, kPhaseHeader, peer, fault);
    uint64_t seen, begin = wait_begin(g);
    const uint64_t* word = header_slot(g, g.rank, peer, epoch) + lane;
    bool arrived = await_word(node, epoch, g.first_rank + peer, kPhaseHeader, word, seen, true);
    if (blockIdx.x == 0 && lane == 0) tell_wait(g, kWaitForHeader, g.first_rank + peer, begin);
    table.of[peer][lane] = word_value(seen);
    if (arrived && left) record_fault(g, epoch, fault);
    return arrived && !left;
}

// Collects every rank's header, in each block for itself. All threads; at least num_ranks warps, or a large node.
// False: one did not come. The header of a masked rank is all zeros.
__device__ inline bool read_headers(const OneNode& node, uint32_t epoch, HeaderTable& table) {
    const Group& g = node.g;
    bool arrived = true;
    for (int peer = threadIdx.x / 32; peer < g.num_ranks; peer += blockDim.x / 32) {
        if (node.takes_part(peer)) {
            arrived &= read_header(node, epoch, table, peer);
        } else {
            table.of[peer][threadIdx.x % 32] = 0;
        }
        if (!kIsWide) break;
    }
    return __syncthreads_and(arrived);
}

// What all ranks conclude alike from the headers: a rank's own status first, then words that differ from those of the
// first rank. One warp; the result is the same in all lanes.
__device__ inline Fault judge_headers(const OneNode& node, const HeaderTable& table) {
    const Group& g = node.g;
    Fault fault;
    int lane = threadIdx.x % 32;
    uint32_t bad = __ballot_sync(~0u, lane < g.num_ranks && table.of[lane % kMaxRanks][kStatus] != kOk);
    int first_lane = 0;
    if constexpr (kIsWide)
        for (int r = 1; r < kRounds && bad == 0; ++r) {
            first_lane = r * 32;
            int rank = first_lane + lane;
            bad = __ballot_sync(~0u, rank < g.num_ranks && table.of[rank % kMaxRanks][kStatus] != kOk);
        }
    if (bad != 0) {
        fault.rank = first_lane + __ffs(bad) - 1;
        const int32_t* header = table.of[fault.rank];
        fault.code = header[kStatus];
        fault.token = header[kStatusToken];
        fault.k = header[kStatusK];
        fault.seen = static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(header[kStatusValueHigh])) << 32 |
                                          static_cast<uint32_t>(header[kStatusValueLow]));
        return fault;
    }
    int first = 0;
    while (!node.takes_part(first)) ++first;
    for (int r = first + 1; r < g.num_ranks; ++r) {
        bad = __ballot_sync(~0u, lane < kNumCompared && table.of[r][lane] != table.of[first][lane]);
        if (bad == 0 || !node.takes_part(r)) continue;
        fault.code = kHeaderMismatch;
        fault.rank = r;
        fault.peer = first;
        fault.k = __ffs(bad) - 1;
        fault.expected = table.of[first][fault.k];
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

// What of this call peers learn by a flag, as far as all blocks that have arrived know.
__device__ __forceinline__ uint32_t told_code(const Group& g, uint32_t epoch) {
    const LocalState* state = state_of(g);
    if (*static_cast<const volatile uint32_t*>(&state->claimed_epoch) != epoch) return kOk;
    uint32_t code = load_acquire_sys(&state->code);  // acquire; pairs with record_fault
    return is_abort(code) || code == kTooManyExpanded ? code : kOk;
}

// The first of the calls that this rank has ended with a code, if it ends this one so.
__device__ __forceinline__ uint32_t told_since(const Group& g, uint32_t epoch) {
    uint32_t since = state_of(g)->told_since;
    return since != 0 ? since : epoch;
}

// What peers learn beside the code, the first of `words`, before that is released.
__device__ __forceinline__ void tell_more(const Group& g, uint32_t epoch, uint64_t* words) {
    store_relaxed_sys(words + kDoneDetail, state_of(g)->detail);
    store_relaxed_sys(words + kDoneCulprit, state_of(g)->culprit);
    store_relaxed_sys(words + kDoneSince, told_since(g, epoch));
}

// What this rank said of its waits ends with the call: by a word as of the call before, which still counts in this one,
// where others may be about to read what it stored at the end. Where others may be in the next call, they have patience
// after one that it gave up, until they know of that. One thread of the block that leaves last; out of line, for its
// registers.
template <class Others>
__device__ __noinline__ void take_back_waits(Others others) {
    LocalState* state = state_of(others.g);
    uint32_t epoch = epoch_after(state->epoch);
    bool said = state->waiting_epoch == epoch || state->waiting_beat != 0;
    if (!said || (has_given_up(others.g, epoch) && !others.end_together())) return;
    state->waiting_beat = 0;
    fence_sys();  // pairs with go_on
    others.say_to_wait(pack_word(epoch - 1, 0));
}

// Tells every rank of the node that this one is done with the epoch (or has given up), and waits until all are. All
// threads of the block that leaves last. Nothing waits in a call that never got past the headers: there was no data,
// and a rank that is still on its way concludes the same from the headers or reads it in the done flag.
template <class Others>
__device__ inline void exchange_done(const Others& others, uint32_t epoch, bool ok) {
    const Group& g = others.g;
    uint32_t code = told_code(g, epoch);
    // All ranks have begun the call, so it waits only for what runs. Sooner, blocks of the next launch would hold SMs
    // that the engine can use meanwhile.
    if (ok && threadIdx.x == 0) allow_next_launch();
    if (threadIdx.x < g.num_ranks && others.takes_part(threadIdx.x)) {
        uint64_t* flag = done_flag(g, threadIdx.x, g.rank);
        if (code != kOk) tell_more(g, epoch, flag);
        // release; pairs with the acquires in wait_peers and neighbour_left. Rows, metadata and pulls of all blocks
        // come before it.
        store_release_sys(flag, pack_word(epoch, code));
        if (ok && !is_abort(code)) {
            uint64_t begin = wait_begin(g);
            wait_peers(others, epoch, kPhaseDone, threadIdx.x);
            tell_wait(g, kWaitForEnd, g.first_rank + threadIdx.x, begin);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        take_back_waits(others);
        state_of(g)->told_since = code == kOk ? 0 : told_since(g, epoch);
    }
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
        if (state->claimed_epoch == epoch) code = atomicExch(&state->code, kOk);
        state->claimed_epoch = 0;  // epochs come again
        store_release_sys(&at<StatusBlock>(g.status)->done, pack_word(epoch, code));  // release; pairs with the host
    }
    return code;
}

template <class Others>
__device__ inline uint32_t finish_call(const Others& others, uint32_t epoch, bool ok) {
    exchange_done(others, epoch, ok);
    return close_call(others.g, epoch);
}

}  // namespace deepep::normal
