// Combine of rows that lie where peers cannot read them: some blocks bring them by bulk copies to where their readers
// find them, while the others sum what is there already. Whole blocks, because an SM's copy engine works in order: a
// copy would wait behind the loads of the same SM. They wait for no peer until all is staged, and only then sum.
//
// If all ranks have such rows, and each has room in its combine region for those of its tokens, the rows go straight
// there: they cross the link once and are read locally. Otherwise a rank brings them into its own region, and peers
// pull.
//
// Rows travel in batches, in the order in which they are needed: the first rows of each peer's tokens, then the next.
// When a batch is there, a flag in its reader's heap says so. A rank's own tokens are summed from where the rows were,
// so these are not staged.
#pragma once

#include "../shared/exchange.cuh"
#include "../shared/normal_params.cuh"
#include "deepep/bulk_copy.cuh"

namespace deepep::normal {

// What is in a stage, and whether a batch ends with it.
struct StagedChunk {
    uint64_t to;
    uint64_t* flag;  // of the batch's reader; null: the batch goes on
    uint32_t bytes;
};

struct StageShared {
    uint64_t loaded[kStageDepth];
    StagedChunk chunks[kStageDepth];
};

// The rows that this rank sends to each rank of its node, as the dispatch left them behind the rows it received.
struct SentRows {
    int32_t first, count;  // among all rows there
};

__device__ __forceinline__ SentRows sent_rows(const CombineParams& p, int rank) {
    auto sent = at<const int32_t>(p.source_rows) + p.group.num_ranks + 1 + rank * 2;
    return {sent[0], sent[1]};
}

// What lane `reader` of a header's counts says to that peer: the row of this rank's region where it puts its first row,
// or kNoRoom, or kAllInPlace. One warp.
__device__ inline int32_t offer_room(const CombineParams& p, int reader) {
    bool sends = reader >= 0 && reader < p.group.num_ranks && reader != p.group.rank;
    int32_t count = sends && p.stage_x ? sent_rows(p, reader).count : 0, end = inclusive_sum(count);
    if (!p.stage_x) return kAllInPlace;
    return __shfl_sync(~0u, end, 31) <= p.room ? end - count : kNoRoom;
}

// Where `holder` learns that a batch of its rows from rank `stager` can be read.
__device__ __forceinline__ uint64_t* staged_flag(const CombineParams& p, int holder, int stager, int batch) {
    return at<uint64_t>(p.group.heap[holder], p.staged_flag_offset + stager * p.staged_flag_stride + batch * 8ull);
}

// Gives a warp its share of the chunks to stage.
class StageQueue {
  public:
    // room: where each peer takes this rank's rows, in rows of its region; null: they stay in this rank's region.
    __device__ StageQueue(const CombineParams& p, const int32_t* room)
        : p_(p), room_(room), num_peers_(p.group.num_ranks - 1) {
        for (int i = 0; i < num_peers_; ++i) {
            int source = peer(i), rows = source_row(source + 1) - source_row(source);
            num_batches_ = max(num_batches_, (rows + p.batch_rows - 1) / p.batch_rows);
        }
        draw();
    }

    // The next chunk: where it comes from, and what it is. False: there are no more.
    __device__ bool next(uint64_t& from, StagedChunk& chunk) {
        while (row_ == end_)
            if (!open_batch()) return false;
        uint32_t begin = chunk_ * p_.chunk_bytes;
        uint64_t row = row_;
        from = p_.stage_x + row * p_.stage_x_stride + begin;
        chunk.to = region_ + row * p_.x_stride + begin;
        chunk.bytes = min(p_.hidden * 2 - begin, static_cast<uint32_t>(p_.chunk_bytes));
        if (++chunk_ == p_.num_chunks) chunk_ = 0, ++row_;
        chunk.flag = row_ == end_ ? staged_flag(p_, source_, p_.group.rank, batch_) : nullptr;
        return true;
    }

  private:
    __device__ int peer(int i) const { return (p_.group.rank + 1 + i) % p_.group.num_ranks; }
    // Not past the end of x: a replayed graph has that of its capture, and a dispatch since may have brought more rows.
    __device__ int source_row(int source) const {
        return min(at<const int32_t>(p_.source_rows)[source], p_.num_rows);
    }
    __device__ void draw() { ticket_ = num_peers_ > 0 ? add_relaxed_gpu(&state_of(p_.group)->stage_cursor, 1) : 0; }

    __device__ bool open_batch() {
        int batch = num_peers_ > 0 ? ticket_ / num_peers_ : 0;
        if (batch >= num_batches_) return false;
        source_ = peer(ticket_ % num_peers_);
        batch_ = batch;
        int last = source_row(source_ + 1);
        int first = source_row(source_);
        region_ = p_.group.heap[room_ ? source_ : p_.group.rank] + p_.x;
        if (room_) region_ += static_cast<int64_t>(room_[source_] - first) * static_cast<int64_t>(p_.x_stride);
        row_ = min(first + batch * p_.batch_rows, last);
        end_ = min(row_ + p_.batch_rows, last);
        draw();  // asked for early, used when this batch has been loaded
        return true;
    }

    const CombineParams& p_;
    const int32_t* room_;
    uint64_t region_ = 0;  // where row 0 of this rank would go
    int num_peers_, num_batches_ = 0;
    uint32_t ticket_;
    int source_ = 0, batch_ = 0, row_ = 0, end_ = 0, chunk_ = 0;
};

// One thread of each staging warp. stages: kStageDepth * chunk_bytes of shared memory, of the warp's own.
__device__ inline void stage_rows(const CombineParams& p, uint32_t epoch, const int32_t* room, uint8_t* stages,
                                  StageShared& shared) {
    StageQueue queue(p, room);
    uint32_t num_loaded = 0, num_stored = 0, in_batch = 0;
    uint64_t* written_next = nullptr;  // the flag of the last batch that was stored whole, until it has been written
    auto tell = [&] {
        fence_async_proxy();
        // release; pairs with the acquire in await_staged. The batch has been written.
        if (written_next) store_release_sys(written_next, pack_word(epoch, kOk));
    };
    auto load = [&] {
        uint64_t from;
        uint32_t s = num_loaded % kStageDepth;
        if (!queue.next(from, shared.chunks[s])) return false;
        barrier_arrive_expect(&shared.loaded[s], shared.chunks[s].bytes);
        bulk_load(stages + s * p.chunk_bytes, at<const uint8_t>(from), shared.chunks[s].bytes, &shared.loaded[s]);
        ++num_loaded;
        return true;
    };
    bool more = true;
    while (more && num_loaded < kStageDepth) more = load();
    for (; num_stored < num_loaded; ++num_stored) {
        uint32_t s = num_stored % kStageDepth;
        barrier_wait(&shared.loaded[s], num_stored / kStageDepth & 1);
        StagedChunk chunk = shared.chunks[s];
        bulk_store(at<uint8_t>(chunk.to), stages + s * p.chunk_bytes, chunk.bytes);
        bulk_commit();
        ++in_batch;
        if (chunk.flag) {
            for (; in_batch < kChunksPerBatch; ++in_batch) bulk_commit();  // as many groups in each batch, at least
            bulk_wait_written<kChunksPerBatch>();                          // all batches but this one
            tell();
            written_next = chunk.flag;
            in_batch = 0;
        }
        bulk_wait_read<0>();
        if (more) more = load();
    }
    bulk_wait_written<0>();
    tell();
}

// Until the row of a token that this lane needs from `stager` has been staged. False: it did not come in time.
__device__ __forceinline__ bool await_staged(const CombineParams& p, const OneNode& node, uint32_t epoch, int stager,
                                             int first_row, int row) {
    const Group& g = p.group;
    uint64_t seen;
    auto flag = staged_flag(p, g.rank, stager, (row - first_row) / p.batch_rows);
    return await_word(node, epoch, g.first_rank + stager, kPhaseRows, flag, seen);  // acquire; pairs with stage_rows
}

}  // namespace deepep::normal
