// The receive half of combine: the owner of a token waits for the rows of its selections and sums them, weighted, in
// fp32 and in the order of selections.
#pragma once

#include "combine_send.cuh"

namespace deepep::lowlatency {

constexpr int kCollectWarp = 0;  // of the receivers
constexpr int kPlaceUnitBytes = 8;
static_assert(kLogBlockBytes % kPlaceUnitBytes == 0);

// The threads that receive: those behind the senders, or all threads of a launch that does not send.
struct Receivers {
    int num_threads;
    int thread;

    __device__ explicit Receivers(const Group& g)
        : num_threads(g.phases & kSend ? kThreads - kCombineSenders : kThreads),
          thread(threadIdx.x - (kThreads - num_threads)) {}
    __device__ void sync() const { team_barrier(kBarrierReceive, num_threads); }
    __device__ int num_warps() const { return num_threads / 32; }
    __device__ int warp() const { return thread / 32; }
};

struct CollectShared {
    uint64_t heard;  // mbarrier at which kCollectWarp arrives once: then came, ok and as_expected are final
    RankSet present;   // ranks whose tokens the dispatch brought
    RankSet expected;  // ranks whose rows will be summed, unless one is left out
    RankSet came;      // ranks whose rows are to be summed
    uint32_t taken;    // sums of the block that warps have taken
    bool has_more;     // than the receivers take at first
    bool ok;
    bool as_expected;  // and ok; only where there are packs

    // One thread, before the call is open. The receivers take a sum each.
    __device__ void init(const CombineParams& p, RankSetIn present_in_dispatch, RankSetIn reached_by_dispatch,
                         int num_receivers, int per_token) {
        barrier_init(&heard, 1);
        present = present_in_dispatch;
        if (kHasOneNode) expected = reached_by_dispatch;
        taken = num_receivers;
        has_more = num_receivers * gridDim.x + blockIdx.x < p.num_tokens * per_token;
    }
};

// Hears from every sender which dispatch it combines, and how. One warp, lane by sender and pair of words. All ranks
// conclude alike: words that differ from this rank's own, then a sender's own status.
__device__ inline void collect_senders(const CombineParams& p, const Call& call, const Run& run,
                                       CollectShared& shared) {
    constexpr int kPairs = kCombineHeaderWords / 2, kAtOnce = 32 / kPairs;
    const Group& g = p.group;
    uint64_t start = p.wait_stats ? now_ns() : 0;
    int lane = threadIdx.x % 32, word = lane % kPairs * 2;
    RankSet ranks = {};
    bool lost = false, differs = false;
    Fault fault;
#pragma unroll 1
    for (int first_sender = 0; first_sender < (kRanks > kAtOnce ? g.num_ranks : 1); first_sender += kAtOnce) {
        uint64_t first = 0, second = 0;
        int sender = first_sender + lane / kPairs;
        bool came = sender < g.num_ranks && !(call.masked >> sender & 1);
        if (came) {
            const uint64_t* from = header_from(g, kCombine, sender, call.epoch) + word;
            Wait wait(sender, kPhaseHeader);
            came = await(g, call, wait, call.epoch, [&] { return load_words(from, call.epoch, first, second); });
            lost = lost || (wait.lost && !came);
            if (came && wait.waited && word == 0 && p.wait_stats && blockIdx.x == 0)
                at<int64_t>(p.wait_stats)[sender] += static_cast<int64_t>(now_ns() - start);
        }
        uint32_t all = __ballot_sync(~0u, came) >> (lane / kPairs * kPairs);
        came = (all & ((1u << kPairs) - 1)) == (1u << kPairs) - 1;  // all words of the sender
        bool other_epoch = came && word == kDispatchEpoch && word_value(first) != run.dispatch_epoch;
        bool other_format = came && word == kDispatchEpoch && word_value(second) != static_cast<uint32_t>(p.row_format);
        bool bad_status = came && word == kHasRows && word_value(second) != kOk;
        uint32_t differ = __ballot_sync(~0u, other_epoch || other_format), bad = __ballot_sync(~0u, bad_status);
        bool has_rows = came && word == kHasRows && word_value(first) != 0;
        word_at(ranks, word_of(first_sender)) |= __reduce_or_sync(~0u, has_rows ? 1u << bit_of(sender) : 0);
        uint32_t culprit = differ != 0 ? differ : bad;
        if (culprit == 0 || differs || (differ == 0 && fault.code != kOk)) continue;
        differs = differ != 0;
        int k = __ffs(culprit) - 1, base = k / kPairs * kPairs;
        fault.rank = first_sender + k / kPairs;
        if (differs) {
            bool epoch = __shfl_sync(~0u, other_epoch, k);
            fault.code = kHeaderMismatch;
            fault.k = epoch ? kDispatchEpoch : kRowFormat;
            fault.expected = epoch ? run.dispatch_epoch : p.row_format;
            fault.seen = word_value(__shfl_sync(~0u, epoch ? first : second, k));
        } else {
            fault.code = word_value(__shfl_sync(~0u, second, k));
            fault.token = word_value(__shfl_sync(~0u, first, base + kCombineToken / 2));
            fault.k = word_value(__shfl_sync(~0u, second, base + kCombineToken / 2));
            uint64_t value_low = __shfl_sync(~0u, first, base + kCombineValueLow / 2);
            uint64_t value_high = __shfl_sync(~0u, second, base + kCombineValueLow / 2);
            fault.seen =
                static_cast<int64_t>(static_cast<uint64_t>(word_value(value_high)) << 32 | word_value(value_low));
        }
    }
    lost = __any_sync(~0u, lost);
    ranks = ranks & load_set(run.expected);
    if constexpr (kHasNetwork) {
        if (fault.code == kOk && !lost) await_batches(p, call, ranks);
    }
    if (lane != 0) return;
    shared.came = ranks;
    shared.ok = fault.code == kOk && !lost;
    if (kHasOneNode) shared.as_expected = shared.ok && word_at(ranks, 0) == word_at(shared.expected, 0);
    barrier_arrive(&shared.heard);  // release; pairs with the waits in sum_tokens and sum_unit
    if (fault.code != kOk && !lost && blockIdx.x == 0) record_fault(g, call, fault);
}

__device__ __forceinline__ void store_vector(uint64_t to, const uint4& v) {
    if ((to & 15) == 0) {
        *at<uint4>(to) = v;
    } else {
        store_unaligned(to, v);
    }
}

// The lane's eight channels of a row, as they travel.
template <Wire kWire>
struct RowLane {
    uint4 v = {};

    __device__ void load(uint64_t address, int) { v = *at<const uint4>(address); }
    __device__ void add_to(float* sum, float weight) {
#pragma unroll
        for (int i = 0; i < 8; ++i) add_scaled(sum[i], weight, bf16_at(v, i));
    }
};

template <>
struct RowLane<Wire::kLogFmt> {
    LogLane v = {};

    __device__ void load(uint64_t address, int) { v = load_log(address); }
    __device__ void add_to(float* sum, float weight) {
        align_log(v);
#pragma unroll
        for (int i = 0; i < 8; ++i) add_scaled(sum[i], weight, log_value(v, i));
    }
};

template <>
struct RowLane<Wire::kFp8> {
    uint2 codes = {};
    float scale = 0;

    __device__ void load(uint64_t address, int chunk) {
        int lane = threadIdx.x % 32, in_part = chunk % kPartChunks;
        codes = *at<const uint2>(address);
        address -= kFp8ScaleBytes + in_part * kChunkChannels + lane * 8;  // where the part begins
        scale = *at<const float>(address + (in_part * kChunkScales + lane * kChunkScales / 32) * sizeof(float));
    }
    __device__ void add_to(float* sum, float weight) {
        float factor = __fmul_rn(weight, scale);
        add_scaled_fp8(sum, codes.x, factor);
        add_scaled_fp8(sum + 4, codes.y, factor);
    }
};

// Where the lane's channels of a chunk lie in a row, in units.
template <Wire kWire>
__device__ __forceinline__ uint32_t lane_offset(int chunk, int lane, int channel) {
    int part = chunk / kPartChunks;
    if (kWire == Wire::kFp8)
        return (channel + part * (kFp8PartBytes - kPartChannels) + kFp8ScaleBytes) / kPlaceUnitBytes;
    return (kWire == Wire::kLogFmt ? (chunk * 2 + lane / kLogLanes) * kLogBlockBytes : channel * 2) / kPlaceUnitBytes;
}

// Chunks of a token that a warp sums at once. It has registers for two where few rows are to be summed: then it waits
// half as often.
template <Wire kWire, bool kReduce>
constexpr int kSumChunks = kReduce && kHasOneNode && kWire != Wire::kLogFmt ? 2 : 1;

// The rows of some selections as the lane reads them, and their weights; found before the rows have come. Places are
// counted in units of 8 bytes from where the rows of the call's parity begin, to need few registers.
template <Wire kWire, int kChunks>
struct RowBatch {
    static constexpr int kRows = kChunks > 1 || kWire == Wire::kLogFmt ? 4 : kWire == Wire::kFp8 ? 6 : 8;

    static constexpr uint32_t kNone = ~0u;

    uint32_t from[kRows];
    float weight[kRows];
    uint32_t left;  // selections beyond these

    // row: of the lane's selection. offset: of the lane's channels in every row.
    __device__ RowBatch(uint32_t row, uint32_t offset, float w, uint32_t selected) {
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
            int k = selected != 0 ? __ffs(selected) - 1 : 0;
            uint32_t begin = __shfl_sync(~0u, row, k);
            float factor = __shfl_sync(~0u, w, k);
            from[j] = selected != 0 ? begin + offset : kNone;
            weight[j] = selected != 0 ? factor : 0;
            selected &= selected - 1;
        }
        left = selected;
    }

    // Adds the lane's eight channels of each chunk of the rows. rows: where those of the parity begin. chunk: the
    // first; the lane has channels of num_chunks, the second of which lies `next` units behind.
    __device__ void add_to(float (*sum)[8], uint64_t rows, int chunk, int num_chunks, uint32_t next) const {
        RowLane<kWire> lane[kRows][kChunks];
#pragma unroll
        for (int j = 0; j < kRows; ++j)
#pragma unroll
            for (int c = 0; c < kChunks; ++c)
                if (from[j] != kNone && c < num_chunks)
                    lane[j][c].load(rows + static_cast<uint64_t>(from[j] + c * next) * kPlaceUnitBytes, chunk + c);
#pragma unroll
        for (int j = 0; j < kRows; ++j)
#pragma unroll
            for (int c = 0; c < kChunks; ++c) lane[j][c].add_to(sum[c], weight[j]);
    }
};

// What lane k knows of selection k of a token. kReduce: rows come weighted.
struct Selected {
    int64_t expert;
    float weight;
    uint32_t item;  // in the list of a sender, of what comes in batches
};

template <bool kReduce>
__device__ __forceinline__ Selected load_selected(const CombineParams& p, int token) {
    int lane = threadIdx.x % 32;
    size_t i = static_cast<size_t>(token) * p.topk + lane;
    if (lane >= p.topk || token >= p.num_tokens) return {-1, 0, 0};
    uint32_t sent = kHasNetwork ? at<const uint32_t>(p.sent_items)[i] : 0;
    return {at<const int64_t>(p.topk_idx)[i], kReduce ? 1 : at<const float>(p.topk_weights)[i],
            kReduce ? sent & ((1 << kTokenBits) - 1) : sent >> kTokenBits};
}

// The selections of a token whose rows are to be summed; sender: of the lane's.
template <bool kReduce>
__device__ __forceinline__ uint32_t senders_of(const CombineParams& p, RankSetIn came, Selected mine, int& sender) {
    bool sums = is_expert(mine.expert, p.num_experts);
    sender = sums ? small_div(static_cast<int>(mine.expert), p.experts_per_rank) : 0;
    sums = sums && (came >> sender & 1);
    // Of a token's selections of one rank, the first has the slot of their sum.
    if (kReduce) {
        uint32_t same = __match_any_sync(~0u, sums ? sender : -1);
        sums = sums && threadIdx.x % 32 == __ffs(same) - 1;
    }
    return __ballot_sync(~0u, sums);
}

// Waits for the part of each selection's row that holds the chunks, and sums them. n: the n-th of the token's sums.
template <Wire kWire, bool kReduce>
__device__ __forceinline__ void sum_chunks(const CombineParams& p, const Call& call, RankSetIn came, Selected mine,
                                           int token, int n) {
    constexpr int kChunks = kSumChunks<kWire, kReduce>;
    using Batch = RowBatch<kWire, kChunks>;
    const Group& g = p.group;
    int chunk = n * kChunks, lane = threadIdx.x % 32, channel = chunk * kChunkChannels + lane * 8;
    int num_chunks = kChunks > 1 && channel + kChunkChannels < p.hidden ? 2 : channel < p.hidden;  // of the lane
    int sender;
    uint32_t expected = senders_of<kReduce>(p, came, mine, sender);
    bool sums = expected >> lane & 1;
    bool in_batch = is_remote(g, sender);
    uint64_t in_source = in_batch ? item_offset(p, mine.item) : slot_offset(p, token, lane);
    uint32_t row = (sender * p.row_rank_stride + in_source) / kPlaceUnitBytes;
    uint32_t offset = lane_offset<kWire>(chunk, lane, channel);
    uint32_t next = lane_offset<kWire>(chunk + 1, lane, channel + kChunkChannels) - offset;
    Batch batch(row, offset, mine.weight, expected);
    if (sums && !in_batch) {  // batches have been waited for
        int part = chunk / kPartChunks;
        bool in_two = kChunks > 1 && (chunk + kChunks - 1) / kPartChunks > part && part + 1 < num_parts(p);
#pragma unroll 1
        for (int last_part = part + in_two; sums && part <= last_part; ++part) {
            auto flag = at<const uint32_t>(g.heap[g.rank], flag_offset(p, sender, token, lane, part, call.epoch));
            Wait wait(sender, kPhaseRows);
            // acquire; pairs with the release in flag_rounds
            sums = await(g, call, wait, call.epoch, [&] { return load_acquire_sys(flag); });
        }
    }
    uint32_t selected = __ballot_sync(~0u, sums);
    __syncwarp();  // what lane k has acquired, all lanes read: a ballot orders no memory
    float sum[kChunks][8] = {};
    if (selected != expected) batch = Batch(row, offset, mine.weight, selected);  // a sender is lost
#pragma unroll 1
    for (;;) {
        batch.add_to(sum, g.heap[g.rank] + rows_of(p, call.epoch).offset, chunk, num_chunks, next);
        if (batch.left == 0) break;
        batch = Batch(row, offset, mine.weight, batch.left);
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
        if (c >= num_chunks) break;
        uint64_t to = p.out + token * p.out_stride + (channel + c * kChunkChannels) * 2;
        store_vector(to, round_vector(sum[c]));
    }
}

}  // namespace deepep::lowlatency
