// Rows of a dispatch that go to remote ranks in batches: one put with a signal for each batch.
//
// A batch is some slots of a receiver, one after the other; its flag, a word of 64 bits, has the number of the first
// one. Blocks compose rows in the outbox, where they lie as they do at the receiver, and count them; who counts the
// last one sends the batch. How many rows there are in all is known to the block that announces them, which counts the
// slots that the last batch lacks. A row has no flag of its own, so it carries what that would say.
//
// Counters lie in the outbox, where the flags of batches would be composed.
#pragma once

#include "call.cuh"

namespace deepep::lowlatency {

constexpr int kLackingShift = 16;  // of a counter's value: slots that the batch lacks, above all that are counted
constexpr uint32_t kOneRow = 1, kOneLacking = 1 | 1 << kLackingShift;  // what they add to it

// Rows of an even epoch.
__device__ __forceinline__ RankCells rows_of(const DispatchParams& p) { return {p.row_offset, p.row_rank_stride}; }

__device__ __forceinline__ int batch_of(int slot) { return slot / kDispatchBatchRows; }

// The slot whose flag vouches for a row from a remote source.
__device__ __forceinline__ int first_in_batch(int slot) { return batch_of(slot) * kDispatchBatchRows; }

// Where in a row its tag lies.
__device__ __forceinline__ uint64_t tag_offset(const DispatchParams& p) {
    return p.selections_offset + static_cast<uint64_t>(p.topk) * sizeof(uint32_t);
}

__device__ __forceinline__ uint64_t batch_flag(const DispatchParams& p, int rank, int batch, uint32_t epoch) {
    return p.flag_offset + (epoch & 1) * p.flag_parity_stride + rank * p.flag_rank_stride +
           static_cast<uint64_t>(batch) * kDispatchBatchRows * sizeof(uint64_t);
}

// All lanes of a warp behind a fence, the active ones for remote receivers that differ: counts rows that have been
// composed, or slots that are lacking, and sends the batches that are complete.
__device__ __noinline__ void count_slots(const DispatchParams& p, const Call& call, bool active, int dest, int batch,
                                         uint32_t more) {
    const Group& g = p.group;
    uint32_t counted = 0;
    if (active)
        counted = count_parts(g.heap[g.rank] + g.outbox + batch_flag(p, dest, batch, call.epoch), call.epoch, more);
    bool complete = active && (counted & ((1 << kLackingShift) - 1)) == kDispatchBatchRows;
    if (!__any_sync(~0u, complete)) return;
    fence_sys();  // acquire; the rows of other blocks come before the put that reads them
    uint64_t rows = kDispatchBatchRows - (counted >> kLackingShift);
    uint64_t in_cell = (call.epoch & 1) * p.row_parity_stride +
                       static_cast<uint64_t>(batch) * kDispatchBatchRows * p.row_stride;
    send_flagged(g, complete, dest, rows_of(p), in_cell, rows * p.row_stride,
                 batch_flag(p, g.rank, batch, call.epoch), pack_word(call.epoch, 0));
}

// One warp of the block that has announced so many rows: the last batch of each remote receiver has no more.
__device__ __forceinline__ void close_batches(const DispatchParams& p, const Call& call, const uint32_t* rows_to) {
    const Group& g = p.group;
#pragma unroll 1
    for (int first = 0; first < g.num_ranks; first += 32) {
        int dest = first + threadIdx.x % 32;
        bool sends = dest < g.num_ranks && (call.reached >> dest & 1) && is_remote(g, dest);
        int rows = sends ? rows_to[dest] : 0, in_last = rows % kDispatchBatchRows;
        count_slots(p, call, in_last != 0, dest, batch_of(rows), (kDispatchBatchRows - in_last) * kOneLacking);
    }
}

}  // namespace deepep::lowlatency
