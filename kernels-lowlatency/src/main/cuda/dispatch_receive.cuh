// The receive half of dispatch: rows out of the slots to where the experts read them, packed per expert in the order
// (source rank, token, selection).
//
// Every block learns from the headers where each source's rows begin at each expert; a row's flag says its order among
// those of its source. A warp waits for one part of a row, reads it once and writes it to each of its experts: the
// senders as soon as they have sent, beside the placers that wait for headers, then these too.
#pragma once

#include "call.cuh"
#include "dispatch_send.cuh"
#include "deepep/fp8.cuh"

namespace deepep::lowlatency {

constexpr int kPartVectors = 4;  // 16-byte vectors of a row that a lane copies at once
constexpr int kPartBytes = kPartVectors * 512;

// The warps behind the senders: they place what all then receive.
struct Placers {
    static constexpr int num_threads = kThreads - kDispatchSenders;
    int thread = threadIdx.x - kDispatchSenders;

    __device__ void sync() const { team_barrier(kBarrierReceive, num_threads); }
    __device__ int num_warps() const { return num_threads / 32; }
    __device__ int warp() const { return thread / 32; }
};

struct ReceiveShared {
    uint64_t placed;  // mbarrier at which the placers arrive once: then all of this is final, and the table
    RankSet absent;
    bool odd;   // a header has a word that is a fault
    bool lost;  // a header will not come

    // One thread, before the call is open.
    __device__ void init() {
        barrier_init(&placed, Placers::num_threads);
        absent = {};
        odd = lost = false;
    }
    // Whether rows can be received.
    __device__ __forceinline__ bool ok() const { return !odd && !lost; }
    __device__ __forceinline__ RankSet present(const Group& g) const { return all_ranks(g) & ~absent; }
};

// [num_ranks][header_words] words of the headers; then, unless on one node, [num_ranks][local experts] first rows.
struct CountTable {
    const DispatchParams& p;
    int32_t* words;

    __device__ CountTable(const DispatchParams& params, uint8_t* shared)
        : p(params), words(reinterpret_cast<int32_t*>(shared + p.counts_shared_offset)) {}
    __device__ int num_words() const { return p.header_words; }
    __device__ int num_local_experts() const { return p.experts_per_rank; }
    __device__ int32_t& word(int source, int i) const { return words[source * num_words() + i]; }
    __device__ int32_t& count(int source, int e) const { return word(source, kHeaderCounts + e); }
    __device__ int32_t* first_rows() const { return words + p.group.num_ranks * p.header_words; }

    // Where the rows of a source begin at an expert. The counts of one node's ranks are added up when that is asked
    // for, which is sooner done than for all in advance.
    __device__ __forceinline__ int32_t first_row(int source, int e) const {
        if constexpr (!kHasOneNode) return first_rows()[source * num_local_experts() + e];
        int32_t row = 0;
#pragma unroll 1
        for (int before = 0; before < source; ++before) row += count(before, e);
        return row;
    }
};

// A warp per 64 words of a source, two per lane.
__device__ inline void collect_headers(const DispatchParams& p, const Call& call, Placers team, CountTable table,
                                       ReceiveShared& shared) {
    const Group& g = p.group;
    int lane = team.thread % 32;
    uint64_t start = p.wait_stats ? now_ns() : 0;
    int num_items = (table.num_words() + 63) / 64 * g.num_ranks;
#pragma unroll 1
    for (int item = team.warp(); item < num_items; item += team.num_warps()) {
        int chunk = small_div(item, g.num_ranks), source = item - chunk * g.num_ranks, word = chunk * 64 + lane * 2;
        if (word >= table.num_words()) continue;
        const uint64_t* header = header_from(g, kDispatch, source, call.epoch);
        uint64_t first = 0, second = 0;
        Wait wait(source, kPhaseHeader);
        bool came = !(call.masked >> source & 1) && await(g, call, wait, call.epoch, [&] {
            return load_words(header + word, call.epoch, first, second);
        });
        if (wait.lost && !came) shared.lost = true;
        if (came && wait.waited && word == 0 && p.wait_stats && is_reporting_block())
            at<int64_t>(p.wait_stats)[source] += static_cast<int64_t>(now_ns() - start);
        if (!came) add_rank(shared.absent, source);
        int32_t one = came ? word_value(first) : 0, other = came ? word_value(second) : 0;
        table.word(source, word) = one;
        table.word(source, word + 1) = other;
        if (!came) continue;
        if ((word == kStatus && one != kOk) || (word + 1 == kFormat && other != p.row_format) ||
            (word == kTopk && one != p.topk))
            shared.odd = true;
    }
}

// What a source says of itself.
__device__ __forceinline__ void keep_status(CountTable table, int source, Fault& fault) {
    fault.rank = source;
    fault.code = table.word(fault.rank, kStatus);
    fault.token = table.word(fault.rank, kStatusToken);
    fault.k = table.word(fault.rank, kStatusK);
    fault.expected = table.p.max_tokens;  // of kSelectedTooOften
    fault.seen = static_cast<int64_t>(static_cast<uint64_t>(table.word(fault.rank, kStatusValueHigh)) << 32 |
                                      static_cast<uint32_t>(table.word(fault.rank, kStatusValueLow)));
}

// What all ranks conclude alike: words that differ from this rank's own, then a source's own status. One warp: a lane
// finds the first of its ranks, then the warp the first of these.
__device__ __noinline__ Fault judge_headers(const DispatchParams& p, CountTable table, RankSetIn present) {
    auto first_wrong = [&](auto is_wrong) {
        uint32_t first = ~0u;
#pragma unroll 1
        for (int w = kRankWords - 1; w >= 0; --w) {
            int rank = rank_of_lane(w);
            if (rank < p.group.num_ranks && (present >> rank & 1) && is_wrong(rank)) first = rank;
        }
        return static_cast<int>(__reduce_min_sync(~0u, first));
    };
    Fault fault;
    for (int word : {kFormat, kTopk}) {
        int32_t mine = word == kFormat ? p.row_format : p.topk;
        int rank = first_wrong([&](int source) { return table.word(source, word) != mine; });
        if (rank < 0) continue;
        fault.code = kHeaderMismatch;
        fault.rank = rank;
        fault.k = word;
        fault.expected = mine;
        fault.seen = table.word(rank, word);
        return fault;
    }
    int rank = first_wrong([&](int source) { return table.word(source, kStatus) != kOk; });
    if (rank >= 0) keep_status(table, rank, fault);
    return fault;
}

// Where the rows of each source begin at each expert. Not inlined: ptxas would spill registers of the kernel.
__device__ __noinline__ void place_rows(const DispatchParams& p, Placers team, CountTable table) {
#pragma unroll 1
    for (int i = team.thread; i < p.group.num_ranks * table.num_local_experts(); i += team.num_threads) {
        int source = small_div(i, table.num_local_experts()), e = i - source * table.num_local_experts();
        int32_t row = 0;
#pragma unroll 4
        for (int before = 0; before < source; ++before) row += table.count(before, e);
        table.first_rows()[i] = row;
    }
}

// Waits for the headers; then it is known where each source's rows begin. shared has been initialised.
__device__ inline void place_sources(const DispatchParams& p, const Call& call, Placers team, CountTable table,
                                     ReceiveShared& shared) {
    const Group& g = p.group;
    collect_headers(p, call, team, table, shared);
    if constexpr (!kHasOneNode) {
        team.sync();
        place_rows(p, team, table);
    }
    barrier_arrive(&shared.placed);  // release, by each placer for itself; pairs with the tests in receive_rows
    barrier_wait(&shared.placed, 0);
    if (team.thread == 0) allow_next(g);
    if (!shared.odd || !is_reporting_block() || team.warp() != 0) return;
    Fault fault = judge_headers(p, table, shared.present(g));
    if (team.thread == 0 && !shared.lost) record_fault(g, call, fault);
}

// What the consumer and a later combine read besides the rows. A warp per expert, lane by source; the last warps first,
// as the first have rows.
__device__ inline void report_counts(const DispatchParams& p, Placers team, CountTable table,
                                     const ReceiveShared& shared) {
    const Group& g = p.group;
    int lane = team.thread % 32, last_warp = team.num_warps() - 1;
#pragma unroll 1
    for (int e = (last_warp - team.warp()) * gridDim.x + blockIdx.x; e < table.num_local_experts();
         e += team.num_warps() * gridDim.x) {
        uint32_t total = 0;
        for_words([&](int w) {
            int source = rank_of_lane(w);
            uint32_t count = shared.ok() && source < g.num_ranks ? table.count(source, e) : 0;
            if (source < g.num_ranks)
                at<uint64_t>(p.out_layout_range)[e * g.num_ranks + source] =
                    static_cast<uint64_t>(table.first_row(source, e)) << 32 | count;
            total += count;
        });
        int32_t rows = __reduce_add_sync(~0u, total);
        if (lane != 0) continue;
        at<int32_t>(p.out_counts)[e] = rows;
        if (p.cumulative_stats) at<int32_t>(p.cumulative_stats)[e] += rows;
    }
    if (!is_reporting_block() || team.warp() != last_warp) return;
    auto bank = at<Bank>(p.bank);
    for_words([&](int w) {
        int source = rank_of_lane(w);
        if (source < g.num_ranks) {
            bank->num_tokens[source] = table.word(source, kNumTokens);
            bank->num_selections[source] = shared.ok() ? table.word(source, kNumSelections) : 0;
            bank->num_rows[source] = shared.ok() ? table.word(source, kNumRows) : 0;
        }
        if (lane == 0) bank->present[w] = shared.ok() ? word_at(shared.present(g), w) : 0;
    });
    if (lane == 0) bank->received = shared.ok() ? p.dispatch : 0;
}

// The output row of a lane's selection.
struct Place {
    int32_t expert;
    int32_t row;

    __device__ Place of_lane(int lane) const { return {__shfl_sync(~0u, expert, lane), __shfl_sync(~0u, row, lane)}; }
};

// What one warp copies of a row, in its registers: a part of the elements and of the scales that belong to them.
struct RowPart {
    uint4 v[kPartVectors];
    uint32_t scale;  // of the lane's group of channels, or its word of packed scales
};

template <bool kCast>
__device__ __forceinline__ int row_bytes(const DispatchParams& p) {
    return kCast ? p.hidden : p.hidden * 2;
}

template <bool kCast>
__device__ __forceinline__ void load_part(const DispatchParams& p, uint64_t row, int part, RowPart& r) {
    int lane = threadIdx.x % 32, first = part * kPartBytes + lane * 16;
#pragma unroll
    for (int j = 0; j < kPartVectors; ++j)
        if (first + j * 512 < row_bytes<kCast>(p)) r.v[j] = *at<const uint4>(row + first + j * 512);
    int column = part * (kPartBytes / kScaleChannels) + lane;
    if (kCast && lane < kPartBytes / kScaleChannels && column < p.hidden / kScaleChannels)
        r.scale = at<const uint32_t>(row + p.hidden)[column];
}

template <bool kCast>
__device__ __forceinline__ void store_part(const DispatchParams& p, const RowPart& r, int part, const Place& to) {
    int lane = threadIdx.x % 32, first = part * kPartBytes + lane * 16;
    int64_t num_slots = p.group.num_ranks * p.max_tokens;
    uint64_t row = p.out_x + (to.expert * num_slots + to.row) * row_bytes<kCast>(p);
#pragma unroll
    for (int j = 0; j < kPartVectors; ++j)
        if (first + j * 512 < row_bytes<kCast>(p)) *at<uint4>(row + first + j * 512) = r.v[j];
    if (!kCast) return;
    // Column-major: the scales of one group of channels lie side by side for all rows of an expert.
    bool packed = p.format == kFp8Ue8m0;
    int columns = p.hidden / kScaleChannels, column = part * (kPartBytes / kScaleChannels) + lane;
    bool mine = lane < kPartBytes / kScaleChannels && column < columns;
    if (packed) {
        columns = (columns + 3) / 4;
        column /= 4;
        mine = mine && lane % 4 == 0;
    }
    int64_t place = (static_cast<int64_t>(to.expert) * columns + column) * num_slots + to.row;
    if (mine) at<uint32_t>(p.out_scales)[place] = r.scale;
}

// Where a selection's row goes; its row is -1 if it is of another rank, or none.
__device__ __forceinline__ Place place_of(CountTable table, int source, uint32_t selection) {
    int expert = selection >> kOrderBits, order = selection & ((1 << kOrderBits) - 1);
    bool valid = selection != ~0u && expert < table.num_local_experts() && order < table.count(source, expert);
    return {expert, valid ? table.first_row(source, expert) + order : -1};
}

__device__ __forceinline__ uint32_t pack_place(const Place& place) {
    return static_cast<uint32_t>(place.expert) << kRowBits | place.row;
}

// A part of the row that a flag stands for. word: lane k's of the flag. All lanes.
template <bool kCast>
__device__ __forceinline__ void unpack_part(const DispatchParams& p, CountTable table, int source, int part,
                                            RowPart& r, const uint4& word, int slot) {
    int lane = threadIdx.x % 32;
    uint32_t tag = word.w;
    Place place = place_of(table, source, lane < p.topk ? word.y : ~0u);
    bool valid = place.row >= 0;
    uint32_t selected = __ballot_sync(~0u, valid);
    if (kCast && p.format == kFp8Ue8m0) r.scale = pack_ue8m0(r.scale);
#pragma unroll 1
    for (uint32_t left = selected; left != 0; left &= left - 1)
        store_part<kCast>(p, r, part, place.of_lane(__ffs(left) - 1));
    if (part != 0) return;
    uint32_t token = tag & ((1 << kTokenBits) - 1);
    // For a combine that sums before it sends.
    if (p.topk_weights && lane < p.topk) {
        size_t row = static_cast<size_t>(source) * p.max_tokens + slot;
        at<RowSelection>(p.row_selections)[row * p.max_topk + lane] = {valid ? pack_place(place) : ~0u, word.z};
        at<uint32_t>(p.row_tokens)[row] = token;
    }
    if (!valid) return;
    int number = (tag >> kTokenBits) + __popc(selected & ((1u << lane) - 1));
    if (number < p.max_tokens * p.max_topk)
        at<Selection>(p.selections)[static_cast<int64_t>(source) * p.max_tokens * p.max_topk + number] = {
            pack_place(place), token << kTopkBits | lane};
    int64_t num_slots = p.group.num_ranks * p.max_tokens;
    at<int32_t>(p.out_src_info)[place.expert * num_slots + place.row] = token;
}

// A warp stays with one source and part, and takes the rows in the order in which they are sent. Until sources are
// placed it is not known how many there are: a warp looks out for its first row all the same, and loads it. All warps
// of a block; those that have sent before those that place, and last the blocks that send first.
template <bool kCast>
__device__ inline void receive_rows(const DispatchParams& p, const Call& call, CountTable table,
                                    ReceiveShared& shared) {
    const Group& g = p.group;
    uint32_t parity = call.epoch & 1;
    int num_parts = (row_bytes<kCast>(p) + kPartBytes - 1) / kPartBytes, lane = threadIdx.x % 32;
    int without = g.phases & kSend ? 1 : 0, warp = threadIdx.x / 32;  // the courier, if there is one
    Deal deal(g.num_ranks * num_parts, warp > kCourier ? warp - without : warp, kThreads / 32 - without,
              gridDim.x - 1 - blockIdx.x);
    int k = lane - small_div(lane, p.topk) * p.topk;
    bool placed = false;
#pragma unroll 1
    for (int group = deal.group; group < g.num_ranks * num_parts; group += deal.next_group) {
        int part = small_div(group, g.num_ranks), source = group - part * g.num_ranks;
        uint64_t flags =
            g.heap[g.rank] + p.flag_offset + parity * p.flag_parity_stride + source * p.flag_rank_stride;
        uint64_t rows = g.heap[g.rank] + p.row_offset + parity * p.row_parity_stride + source * p.row_rank_stride;
#pragma unroll 1
        for (int slot = deal.item; slot < p.max_tokens; slot += deal.next_item) {
            uint4 word;  // of lane k, and of every topk-th lane after it: that of selection k
            auto look = [&] {
                // acquire; pairs with the release in await_elements, or the signal in count_slots
                if (is_remote(g, source)) {
                    word.x = word_epoch(load_acquire_sys(at<const uint64_t>(flags) + first_in_batch(slot)));
                } else {
                    uint64_t flag = flags + slot * p.flag_stride;
                    word = load_acquire_sys_b128(at<const uint4>(flag) + k);
                }
                return word.x;
            };
            auto is_row = [&] { return shared.ok() && slot < table.word(source, kNumRows); };
            bool came = false;
            while (!placed && !__all_sync(~0u, came)) {
                came = look() == call.epoch;
                placed = __all_sync(~0u, barrier_test(&shared.placed, 0));  // acquire; pairs with place_sources
            }
            if (placed && !is_row()) break;
            if (!__all_sync(~0u, came)) {
                Wait wait(source, kPhaseRows);
                came = await(g, call, wait, call.epoch, look);
                if (!__all_sync(~0u, came)) break;  // lost after its header; what it announced is undefined
            }
            int place = is_remote(g, source) ? slot : word.w & ((1 << kTokenBits) - 1);
            uint64_t row = rows + static_cast<uint64_t>(place) * p.row_stride;
            RowPart r = {};
            {
                Speculation early(!placed);  // sizes may differ: then nothing is used of what lies behind a shorter row
                load_part<kCast>(p, row, part, r);
            }
            if (is_remote(g, source)) {
                word.y = at<const uint32_t>(row + p.selections_offset)[k];
                if (p.topk_weights) word.z = at<const uint32_t>(row + p.weights_offset)[k];
                word.w = *at<const uint32_t>(row + tag_offset(p));
            }
            if (!placed) barrier_wait(&shared.placed, 0);
            placed = true;
            if (!is_row()) break;
            unpack_part<kCast>(p, table, source, part, r, word, slot);
        }
    }
}

}  // namespace deepep::lowlatency
