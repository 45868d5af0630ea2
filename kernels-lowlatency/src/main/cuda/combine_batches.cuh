// Rows of a combine that go to remote owners in batches: one put with a signal for each batch.
//
// A batch is a few items of an owner's list, one after the other. Their rows lie one after the other too, in the outbox
// and at the owner, who knows from its dispatch which item each of its selections is. Warps compose parts of the rows
// and count them; who counts the last one sends the batch. The header of a combine says how many batches come. A row
// cannot vouch for itself by a flag in its last bytes: where writes overtake each other, on PCI or between packets,
// these may arrive first.
//
// Counters lie in the outbox, where flags of a part would be composed, and a batch's flag where its number is that of a
// token and selection.
#pragma once

#include "combine_rows.cuh"

namespace deepep::lowlatency {

constexpr int kFewestBatchRows = 8, kMostBatchRows = 32;

// How the items for an owner are divided: as many batches as the rank has experts, if that makes them neither small
// nor large.
struct Batches {
    int num_items;
    int rows;  // of each but the last
    int number;

    __device__ Batches(const CombineParams& p, int items)
        : num_items(items),
          rows(min(max(small_div(items + p.experts_per_rank - 1, p.experts_per_rank), kFewestBatchRows),
                   kMostBatchRows)),
          number(small_div(items + rows - 1, rows)) {}
    __device__ int of(int item) const { return small_div(item, rows); }
    __device__ int rows_of(int batch) const { return min(rows, num_items - batch * rows); }
};

// kHasRows of a header: 0, or 1 and the number of batches.
__device__ __forceinline__ uint32_t pack_batches(const CombineParams& p, int num_items) {
    return 1 | static_cast<uint32_t>(Batches(p, num_items).number) << 1;
}

__device__ __forceinline__ int num_batches(uint32_t word) { return static_cast<int>(word >> 1); }

__device__ __forceinline__ uint64_t batch_offset(const CombineParams& p, int source, int batch, uint32_t epoch) {
    int token = small_div(batch, p.max_topk);
    return flag_offset(p, source, token, batch - token * p.max_topk, 0, epoch);
}

// For a receive half of its own, before which a later dispatch may take the bank. One block of the send half.
__device__ inline void keep_items(const CombineParams& p, int thread, int num_threads) {
    if (p.kept_items == 0) return;
    for (int i = thread; i < p.num_tokens * p.topk; i += num_threads)
        at<uint32_t>(p.kept_items)[i] = at<const uint32_t>(p.sent_items)[i];
}

// A team's last warp, lane by warp that has stored, behind a fence: counts the parts of remote owners, and sends the
// batches that are complete. item: whose part it is.
template <typename Rows>
__device__ __noinline__ void send_batches(const CombineParams& p, const Call& call, bool active, int owner, int item) {
    const Group& g = p.group;
    int first = 0, rows = 0, batch = 0;
    bool complete = false;
    if (active) {
        Batches batches(p, Rows::num_items(p, owner));
        batch = batches.of(item);
        first = batch * batches.rows;
        rows = batches.rows_of(batch);
        uint64_t counter = g.heap[g.rank] + g.outbox + batch_offset(p, owner, batch, call.epoch);
        complete = count_parts(counter, call.epoch, 1) == static_cast<uint32_t>(rows * num_parts(p));
    }
    if (!__any_sync(~0u, complete)) return;
    fence_sys();  // acquire; the parts of other blocks come before the put that reads them
    send_flagged(g, complete, owner, rows_of(p, call.epoch), item_offset(p, first), rows * p.row_stride,
                 batch_offset(p, g.rank, batch, call.epoch), call.epoch);
}

// Waits for the batches of remote senders; those in `came` that are lost leave it. One warp.
__device__ inline void await_batches(const CombineParams& p, const Call& call, RankSet& came) {
    constexpr int kPairs = kCombineHeaderWords / 2, kAtOnce = 32 / kPairs;
    const Group& g = p.group;
    int lane = threadIdx.x % 32;
    __syncwarp();  // lanes load again what another has seen
#pragma unroll 1
    for (int first_sender = 0; first_sender < g.num_ranks; first_sender += kAtOnce) {
        int sender = first_sender + lane / kPairs;
        bool missing = false;
        if (sender < g.num_ranks && (came >> sender & 1) && is_remote(g, sender)) {
            // It has come: collect_senders has seen it.
            uint64_t word = load_relaxed_sys(header_from(g, kCombine, sender, call.epoch) + kHasRows);
            int number = num_batches(word_value(word));
#pragma unroll 1
            for (int batch = lane % kPairs; batch < number && !missing; batch += kPairs) {
                auto flag = at<const uint32_t>(g.heap[g.rank], batch_offset(p, sender, batch, call.epoch));
                Wait wait(sender, kPhaseRows);
                // acquire; pairs with the signal in send_batches
                missing = !await(g, call, wait, call.epoch, [&] { return load_acquire_sys(flag); });
            }
        }
        uint32_t lost = __ballot_sync(~0u, missing);
        for (int r = 0; r < kAtOnce; ++r)
            if (lost >> (r * kPairs) & ((1u << kPairs) - 1))
                word_at(came, word_of(first_sender)) &= ~(1u << (bit_of(first_sender) + r));
    }
    __syncwarp();  // what the lanes have acquired, all of the block read
}

}  // namespace deepep::lowlatency
