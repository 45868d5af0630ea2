// Combine for owners that have few tokens, on one node: rows travel in packs, 16 bytes that arrive together, 12 of the
// row and 4 the epoch. So neither a fence nor a flag lies between the sender's store and the owner's sum.
//
// A unit is what a warp sends and sums at once: a pack for each lane, so few tokens keep many warps busy. Packs lie in
// memory of their own: in anybody else's an epoch could be anything.
#pragma once

#include "combine_receive.cuh"

namespace deepep::lowlatency {

#ifdef DEEPEP_LOWLATENCY_INTERNODE
template <Wire kWire>
constexpr bool kPacks = false;
#else
template <Wire kWire>
constexpr bool kPacks = kWire != Wire::kLogFmt;
#endif

// The packs of a parity, by source.
__device__ __forceinline__ RankCells packs_of(const CombineParams& p, uint32_t epoch) {
    return {p.pack_offset + (epoch & 1) * p.pack_parity_stride, p.pack_rank_stride};
}

// The most tokens of an owner that has few: sums are fewer than rows, so it pays for more tokens to send more bytes.
template <bool kReduce>
constexpr int kMostPacked = kReduce ? kPackedSums : kPackedTokens;

// Whether this rank has, and so sums packs.
template <Wire kWire, bool kReduce>
__device__ __forceinline__ bool sums_packs(const CombineParams& p) {
    return kPacks<kWire> && p.num_tokens <= kMostPacked<kReduce>;
}

// Whether an owner has, if its tokens have come.
template <bool kReduce>
__device__ __forceinline__ bool takes_packs(const Bank* bank, int rank) {
    return bank->num_tokens[rank] <= kMostPacked<kReduce>;
}

// The owners that have. All lanes of a warp.
template <bool kReduce>
__device__ __forceinline__ uint32_t pack_takers(const Bank* bank) {
    int rank = threadIdx.x % 32;
    return __ballot_sync(~0u, rank < kRanks && takes_packs<kReduce>(bank, rank % kRanks)) & bank->present[0];
}

// Where a row's packs lie among those of its source: the sum of a rank's rows of a token, or the row of a selection.
template <bool kReduce>
__device__ __forceinline__ uint32_t pack_row(const CombineParams& p, uint32_t token, uint32_t k) {
    return kReduce ? token : token * p.max_topk + k;
}

constexpr int kPackWords = 3;

// The words of a lane's pack, but for the epoch.
struct PackWords {
    uint32_t w[kPackWords];
};

// For rows that do not begin on 4 bytes, out of line.
__device__ __noinline__ PackWords load_unaligned_pack(uint64_t from, uint64_t end) {
    PackWords words;
    for (int i = 0; i < kPackWords; ++i) {
        auto half = at<const uint16_t>(from + i * 4);
        words.w[i] = from + i * 4 < end ? half[0] | static_cast<uint32_t>(half[1]) << 16 : 0;
    }
    return words;
}

// What a pack holds of a row: kChannels. Row: these as bf16.
template <Wire kWire>
struct Pack {
    using Row = PackWords;
    static constexpr int kChannels = 2 * kPackWords;

    // Zeros beyond the row's end.
    __device__ __forceinline__ static Row load(uint64_t from, uint64_t end) {
        if ((from & 3) != 0) return load_unaligned_pack(from, end);
        Row row;
#pragma unroll
        for (int i = 0; i < kPackWords; ++i) row.w[i] = from + i * 4 < end ? at<const uint32_t>(from)[i] : 0;
        return row;
    }
    __device__ __forceinline__ static Row load_staged(const uint8_t* from) {
        Row row;
#pragma unroll
        for (int i = 0; i < kPackWords; ++i) row.w[i] = reinterpret_cast<const uint32_t*>(from)[i];
        return row;
    }
    __device__ __forceinline__ static void add_row(float* sum, float weight, const Row& row) { add(sum, weight, row); }
    __device__ __forceinline__ static Row round(const float* sum) {
        float padded[8] = {sum[0], sum[1], sum[2], sum[3], sum[4], sum[5]};
        uint4 words = round_vector(padded);
        return {{words.x, words.y, words.z}};
    }
    __device__ __forceinline__ static PackWords encode(const Row& row) { return row; }
    __device__ __forceinline__ static void add(float* sum, float weight, const PackWords& words) {
#pragma unroll
        for (int i = 0; i < kPackWords; ++i) {
            add_scaled(sum[2 * i], weight, __uint_as_float(words.w[i] << 16));
            add_scaled(sum[2 * i + 1], weight, __uint_as_float(words.w[i] & 0xffff0000u));
        }
    }
    // As many words as the row has there.
    __device__ __forceinline__ static void store(uint64_t to, int num_channels, const Row& row) {
#pragma unroll
        for (int i = 0; i < kPackWords; ++i)
            if (i * 2 < num_channels) store_word(to + i * 4, row.w[i]);
    }

private:
    __device__ __forceinline__ static void store_word(uint64_t to, uint32_t word) {
        if ((to & 3) == 0) {
            *at<uint32_t>(to) = word;
        } else {
            at<uint16_t>(to)[0] = static_cast<uint16_t>(word);
            at<uint16_t>(to)[1] = static_cast<uint16_t>(word >> 16);
        }
    }
};

// Eight codes and the scale that they share with those of other lanes.
template <>
struct Pack<Wire::kFp8> {
    using Row = uint4;
    static constexpr int kChannels = 8;

    __device__ __forceinline__ static Row load(uint64_t from, uint64_t end) {
        return load_vectors<1, kChunkChannels * 2>(from, end).v[0];
    }
    __device__ __forceinline__ static Row load_staged(const uint8_t* from) {
        return *reinterpret_cast<const uint4*>(from);
    }
    __device__ __forceinline__ static void add_row(float* sum, float weight, const Row& row) {
        RowLane<Wire::kBf16>{row}.add_to(sum, weight);
    }
    __device__ __forceinline__ static Row round(const float* sum) { return round_vector(sum); }
    // All lanes.
    __device__ __forceinline__ static PackWords encode(const Row& row) {
        Fp8Lane<1> codes = cast_fp8(Vectors<1>{row}, false);
        return {{codes.words[0], codes.words[1], __float_as_uint(codes.scale)}};
    }
    __device__ __forceinline__ static void add(float* sum, float weight, const PackWords& words) {
        RowLane<Wire::kFp8>{{words.w[0], words.w[1]}, __uint_as_float(words.w[2])}.add_to(sum, weight);
    }
    __device__ __forceinline__ static void store(uint64_t to, int num_channels, const Row& row) {
        if (num_channels > 0) store_vector(to, row);
    }
};

constexpr int kTeamStageBytes = kStoreWarps * kReduceStageBytes;

// Channels of a unit.
template <Wire kWire>
constexpr int kUnit = 32 * Pack<kWire>::kChannels;
static_assert(kUnitChannels == kUnit<Wire::kBf16> && kUnitBytes == 32 * sizeof(uint4));
static_assert(kUnitChannels <= kUnit<Wire::kFp8>);  // there is room for as many units as rows in bf16 have

template <Wire kWire>
__device__ __forceinline__ int num_units(const CombineParams& p) {
    return small_div(p.hidden + kUnit<kWire> - 1, kUnit<kWire>);
}

// A unit of a selection's row.
template <Wire kWire>
struct SelectionUnit {
    using Lane = Pack<kWire>;
    using Rows = SelectionRows<kWire>;
    static constexpr int kStageBytes = 0;

    typename Lane::Row of_lane;

    __device__ explicit SelectionUnit(uint8_t*) {}
    __device__ __forceinline__ void load(const CombineParams& p, int in_row, const typename Rows::Item& item) {
        uint64_t row = x_row(p, item.x);
        of_lane = Lane::load(row + in_row + threadIdx.x % 32 * Lane::kChannels * 2, row + p.hidden * 2);
    }
    __device__ __forceinline__ typename Lane::Row sum(const CombineParams&, int) const { return of_lane; }
    __device__ __forceinline__ void await_rows(const CombineParams&) const {}
};

// A unit of the sum of a token's rows. As in ReducedRows, the copy engine brings it to the warp's stage, all rows at
// once. Rows that do not begin on 16 bytes, or are too many for the stage, are read where they are.
template <Wire kWire>
struct ReducedUnit {
    using Lane = Pack<kWire>;
    using Rows = ReducedRows<kWire>;
    static constexpr int kRowBytes = kUnit<kWire> * 2;
    static constexpr int kBarrierBytes = 128;
    static constexpr int kRoom = (kTeamStageBytes / (kStoreWarps + 1) - kBarrierBytes) / kRowBytes;  // rows
    static constexpr int kBarrierAt = (kRoom < kMaxTopk ? kRoom : kMaxTopk) * kRowBytes;
    static constexpr int kStageBytes = kBarrierAt + kBarrierBytes;

    uint32_t stage;         // in the block's dynamic memory
    uint32_t parity = 1;    // of the phase that was waited for last
    uint32_t selected = 0;  // what is summed, by selection
    uint64_t row;           // of selection k in lane k
    float weight;

    __device__ explicit ReducedUnit(uint8_t* memory) : stage(memory - dynamic_shared()) {
        if (threadIdx.x % 32 == 0) {
            barrier_init(arrived(), 1);
            barrier_init_fence();
        }
        __syncwarp();
    }
    __device__ __forceinline__ uint8_t* staged(int j) const { return dynamic_shared() + stage + j * kRowBytes; }
    __device__ __forceinline__ uint64_t* arrived() const {
        return reinterpret_cast<uint64_t*>(staged(0) + kBarrierAt);
    }
    __device__ __forceinline__ bool is_staged(const CombineParams& p) const {
        return has_aligned_rows(p) && (kRoom >= kMaxTopk || __popc(selected) <= kRoom);
    }

    __device__ __forceinline__ void load(const CombineParams& p, int in_row, const typename Rows::Item& item) {
        if (selected != 0) Rows::leave_stage();
        int lane = threadIdx.x % 32;
        bool mine = item.place != ~0u;
        selected = __ballot_sync(~0u, mine);
        row = mine ? x_row(p, item.place) : 0;
        weight = item.weight;
        if (!is_staged(p)) return;
        int bytes = min(kRowBytes, p.hidden * 2 - in_row);
        if (lane == 0) barrier_arrive_expect(arrived(), __popc(selected) * bytes);
        __syncwarp();
        uint8_t* to = staged(__popc(selected & ((1u << lane) - 1)));
        if (mine) bulk_load(to, at<const uint8_t>(row, in_row), bytes, arrived());
    }

    __device__ __forceinline__ void await_rows(const CombineParams& p) {
        if (!is_staged(p)) return;
        parity ^= 1;
        barrier_wait(arrived(), parity);
    }

    __device__ __forceinline__ typename Lane::Row sum(const CombineParams& p, int in_row) {
        int in_unit = threadIdx.x % 32 * Lane::kChannels * 2;
        await_rows(p);
        float sum[Lane::kChannels] = {};
        const uint8_t* from = staged(0) + in_unit;
#pragma unroll 1
        for (uint32_t left = selected; left != 0; left &= left - 1, from += kRowBytes) {
            int k = __ffs(left) - 1;
            float of_row = __shfl_sync(~0u, weight, k);
            uint64_t its_row = __shfl_sync(~0u, row, k);
            Lane::add_row(sum, of_row,
                          is_staged(p) ? Lane::load_staged(from)
                                       : Lane::load(its_row + in_row + in_unit, its_row + p.hidden * 2));
        }
        return Lane::round(sum);
    }
};

// What a warp sends in packs, to the owners that have few tokens: the units of a row go round the warps of the senders.
template <Wire kWire, bool kReduce>
struct PackSender {
    using Unit = std::conditional_t<kReduce, ReducedUnit<kWire>, SelectionUnit<kWire>>;
    using Rows = typename Unit::Rows;
    using Task = Errand<kUnit<kWire>>;
    static_assert((kStoreWarps + 1) * Unit::kStageBytes <= kTeamStageBytes - kTeamBarrierBytes);  // see ReducedRows

    Deal deal;
    int num_items;             // for lane r's rank
    typename Rows::Item next;  // of the first group

    // Asks for the first unit.
    __device__ explicit PackSender(const CombineParams& p)
        : deal(p.group.num_ranks * num_units<kWire>(p), threadIdx.x / 32, kCombineSenders / 32),
          num_items(Rows::num_items(p, threadIdx.x % kRanks)),
          next(Rows::ask(p, Task(p.group, deal.group).owner, deal.item)) {}

    // opens: from the launch's beginning, with the first unit under way when the call is open.
    __device__ void send(const CombineParams& p, const Call& call, uint32_t few, bool opens, uint8_t* stages) {
        const Group& g = p.group;
        // In the team's stages: the other team may still be sending parts.
        Unit unit(stages + threadIdx.x / kSendTeamThreads * kTeamStageBytes +
                  threadIdx.x % kSendTeamThreads / 32 * Unit::kStageBytes);
        if (!(few >> threadIdx.x % kRanks & 1)) num_items = 0;
#pragma unroll 1
        for (int item = deal.item;;) {
            Task errand(g, deal.group);
            bool sends = item < __shfl_sync(~0u, num_items, errand.owner) && errand.part < num_units<kWire>(p);
            int in_row = errand.first_channel() * 2;
            if (sends) unit.load(p, in_row, next);
            if (opens) __syncthreads();
            opens = false;
            if (sends && (call.reached >> errand.owner & 1)) {
                uint32_t origin = Rows::origin(next);
                uint32_t row = pack_row<kReduce>(p, token_of(origin), selection_of(origin));
                uint64_t to = outgoing(g, packs_of(p, call.epoch), errand.owner) + row * p.pack_stride;
                PackWords pack = Pack<kWire>::encode(unit.sum(p, in_row));
                uint4 v = make_uint4(pack.w[0], pack.w[1], pack.w[2], call.epoch);
                // pairs with add_packs
                store_relaxed_sys_b128(at<uint4>(to + errand.part * kUnitBytes) + threadIdx.x % 32, v);
            } else if (sends) {
                unit.await_rows(p);  // no copy may outlive the block
            }
            item += deal.next_item;
            if (!sends) {
                item = deal.item;
                deal.group += deal.next_group;
                if (deal.group >= g.num_ranks * num_units<kWire>(p)) return;
            }
            next = Rows::ask(p, Task(g, deal.group).owner, item);
        }
    }
};

// By the senders of every block, after parts. Out of line: it is rare that some ranks have few tokens, others many.
template <Wire kWire, bool kReduce>
__device__ __noinline__ void send_packs_too(const CombineParams& p, const Call& call, uint32_t few, uint8_t* stages) {
    if constexpr (kReduce) {  // a unit's stage is where other warps of the team have read parts
        fence_async_proxy_shared();
        send_barrier(threadIdx.x / kSendTeamThreads);
    }
    PackSender<kWire, kReduce>(p).send(p, call, few, false, stages);
}

// The senders of every block, from the launch's beginning. A rank that has few tokens expects the same of others.
template <Wire kWire, bool kReduce>
__device__ __forceinline__ void send_home(const CombineParams& p, const Call& call, SendShared& shared,
                                          uint8_t* stages) {
    using Parts = SentRows<kWire, kReduce>;
    if constexpr (!kPacks<kWire>) {
        send_rows<kWire, Parts>(p, call, [](int) { return true; }, shared, stages);
    } else {
        using Packs = PackSender<kWire, kReduce>;
        auto bank = at<const Bank>(p.bank);
        if (sums_packs<kWire, kReduce>(p)) {
            Packs packs(p);
            uint32_t few = pack_takers<kReduce>(bank);
            if (few == bank->present[0]) {
                packs.send(p, call, few, true, stages);
                return;
            }
        }
        send_rows<kWire, Parts>(
            p, call, [&](int rank) { return !takes_packs<kReduce>(bank, rank); }, shared, stages);
        if (shared.pack_takers != 0) send_packs_too<kWire, kReduce>(p, call, shared.pack_takers, stages);
    }
}

constexpr int kPackRows = 8;  // that a warp waits for and sums at once

// Waits for the lane's packs of the first kPackRows of some selections, and adds them. packs: where the lane's pack of
// the first slot lies. row: where the slot of the lane's selection begins, in units of 8 bytes from the first. Leaves
// the selections that are left; if a sender is given up, nothing is added, and these are without the sender's.
// Before the first look it waits until all senders have been heard, unless they have. False: they are not those that
// were expected.
template <Wire kWire>
__device__ __forceinline__ bool add_packs(const Group& g, const Call& call, CollectShared& shared, bool& heard,
                                          uint32_t& selected, int sender, float weight, uint64_t packs, uint32_t row,
                                          bool active, float* sum) {
    int lane = threadIdx.x % 32, order = __popc(selected & ((1u << lane) - 1));
    int num_rows = min(__popc(selected), kPackRows);
    uint32_t left = selected, place = 0;
    float factor = 0;  // lane j: of the j-th of them
#pragma unroll 1
    for (int j = 0; j < num_rows; ++j, left &= left - 1) {
        uint32_t its_row = __shfl_sync(~0u, row, __ffs(left) - 1);
        float its_weight = __shfl_sync(~0u, weight, __ffs(left) - 1);
        if (lane == j) place = its_row, factor = its_weight;
    }
    if (!heard) {
        barrier_wait(&shared.heard, 0);  // acquire; pairs with collect_senders
        heard = true;
        if (!shared.as_expected) return false;
    }
    Wait wait(sender, kPhaseRows);
#pragma unroll 1
    for (int spins = 1;; ++spins) {
        uint4 v[kPackRows];  // beyond num_rows of no meaning: loads without conditions need few registers
        uint32_t late = 0;
#pragma unroll
        for (int j = 0; j < kPackRows; ++j) {
            uint64_t from = packs + static_cast<uint64_t>(__shfl_sync(~0u, place, j)) * kPlaceUnitBytes;
            v[j] = load_relaxed_sys_b128(at<const uint4>(from));
        }
#pragma unroll
        for (int j = 0; j < kPackRows; ++j)
            if (j < num_rows) late |= (v[j].w != call.epoch) << j;
        if (!__any_sync(~0u, active && late != 0)) {
#pragma unroll
            for (int j = 0; j < kPackRows; ++j) {
                float weight_of_row = __shfl_sync(~0u, factor, j);
                if (j >= num_rows) break;
                Pack<kWire>::add(sum, weight_of_row, {{v[j].x, v[j].y, v[j].z}});
            }
            selected = left;
            return true;
        }
        if (spins % kSpinsPerLook != 0) continue;
        late = __reduce_or_sync(~0u, active ? late : 0);
        bool is_late = selected >> lane & 1 && order < kPackRows && late >> order & 1;
        uint32_t gone = __ballot_sync(~0u, is_late && is_over(g, call, wait, call.epoch, 0));
        selected &= ~gone;
        if (gone != 0) return true;
    }
}

// Sums a unit of a token, a pack per lane. The places of packs are found before all senders have been heard, as if no
// rank were left out.
template <Wire kWire, bool kReduce>
__device__ __forceinline__ void sum_unit(const CombineParams& p, const Call& call, CollectShared& shared, Selected mine,
                                         int token, int unit) {
    using Lane = Pack<kWire>;
    const Group& g = p.group;
    int lane = threadIdx.x % 32, channel = unit * kUnit<kWire> + lane * Lane::kChannels;
    bool active = channel < p.hidden, heard = false;
    uint64_t packs = g.heap[g.rank] + packs_of(p, call.epoch).offset + unit * kUnitBytes + lane * sizeof(uint4);
    float sum[Lane::kChannels];
#pragma unroll 1
    for (RankSet senders = shared.expected;; senders = shared.came) {
        int sender;
        uint32_t selected = senders_of<kReduce>(p, senders, mine, sender);
        uint32_t row =
            (sender * p.pack_rank_stride + pack_row<kReduce>(p, token, lane) * p.pack_stride) / kPlaceUnitBytes;
#pragma unroll
        for (int i = 0; i < Lane::kChannels; ++i) sum[i] = 0;
        bool valid = true;
#pragma unroll 1
        while (valid && (selected != 0 || !heard))
            valid = add_packs<kWire>(g, call, shared, heard, selected, sender, mine.weight, packs, row, active, sum);
        if (valid) break;
        if (!shared.ok) return;
    }
    Lane::store(p.out + token * p.out_stride + channel * 2, p.hidden - channel, Lane::round(sum));
}

// Sums of a token: of chunks, or of packs.
template <Wire kWire, bool kReduce>
__device__ __forceinline__ int num_summed(const CombineParams& p) {
    constexpr int kChannels = kSumChunks<kWire, kReduce> * kChunkChannels;
    if (sums_packs<kWire, kReduce>(p)) return num_units<kWire>(p);
    return (p.hidden + kChannels - 1) / kChannels;
}

// What is summed at once: some chunks of a token, or a pack. Those of a token are in different blocks; those of a block
// are taken by its warps in the order of tokens: one each by those that only receive, the others by whoever has nothing
// else to do. So warps that have sent help as much as they can, however late they come.
struct Sum {
    int token, number;

    // The n-th of this block.
    __device__ Sum(int per_token, int n) {
        int index = n * gridDim.x + blockIdx.x;
        token = index < kSmallDividends ? small_div(index, per_token) : index / per_token;
        number = index - token * per_token;
    }
};

// Which sum of the block is the next that nobody has taken. One warp.
__device__ __forceinline__ int take_sum(CollectShared& shared) {
    int n = 0;
    if (threadIdx.x % 32 == 0) n = atomicAdd(&shared.taken, 1);
    return __shfl_sync(~0u, n, 0);
}

// Warps for which the call is open, and which have met collect_senders if they do not sum packs. n: the warp's first
// sum; mine: the selections of its token.
template <Wire kWire, bool kReduce>
__device__ inline void sum_tokens(const CombineParams& p, const Call& call, int n, Selected mine,
                                  CollectShared& shared) {
    int per_token = num_summed<kWire, kReduce>(p);
    auto for_all = [&](auto add) {
#pragma unroll 1
        for (;;) {
            Sum sum(per_token, n);
            if (sum.token >= p.num_tokens) break;
            add(mine, sum.token, sum.number);
            if (!shared.has_more) break;
            n = take_sum(shared);
            mine = load_selected<kReduce>(p, Sum(per_token, n).token);
        }
    };
    if (sums_packs<kWire, kReduce>(p)) {
        for_all([&](Selected selected, int token, int unit) {
            sum_unit<kWire, kReduce>(p, call, shared, selected, token, unit);
        });
    } else {
        if (!shared.ok) return;
        for_all([&](Selected selected, int token, int number) {
            sum_chunks<kWire, kReduce>(p, call, shared.came, selected, token, number);
        });
    }
}

}  // namespace deepep::lowlatency
