// Generated from io.deepep.lowlatency.cuda.LowLatencyStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

#include "deepep/network_structs.cuh"
#include "deepep/ibgda_structs.cuh"
#include "deepep/status_block.cuh"

namespace deepep::lowlatency {

constexpr int kMaxNvlRanks = 8;
constexpr int kMaxRanks = 32;
constexpr int kMaxTokens = 1024;
constexpr int kMaxTopk = 32;
constexpr int kMaxLocalExperts = 131072;
constexpr int kThreads = 768;
constexpr int kSendTeams = 2;
constexpr int kStoreWarps = 7;
constexpr int kLogStageBytes = 2368;
constexpr int kReduceStageBytes = 15872;
constexpr int kPartChannels = 1792;
constexpr int kPackedTokens = 16;
constexpr int kPackedSums = 64;
constexpr int kDispatchBatchRows = 16;
constexpr int kUnitChannels = 192;
constexpr int kUnitBytes = 512;
constexpr int kScaleChannels = 128;
constexpr int kLogChannels = 128;
constexpr int kLogBlockBytes = 168;
constexpr int kFp8ScaleBytes = 64;
constexpr int kFp8PartBytes = 1856;
constexpr int kFirstEpoch = 2;
constexpr int kOrderBits = 15;
constexpr int kTokenBits = 16;
constexpr int kRowBits = 15;
constexpr int kTopkBits = 5;
constexpr int kHeaderCounts = 10;
constexpr int kCombineHeaderWords = 8;

// See Phases.
enum Phases : int32_t {
    kSend = 1,
    kReceive = 2,
    kAllowNext = 4,
};

// See Kind.
enum Kind : int32_t {
    kDispatch = 0,
    kCombine = 1,
};

// See Code.
enum Format : int32_t {
    kBf16 = 0,
    kFp8 = 1,
    kFp8PowerOfTwo = 2,
    kFp8Ue8m0 = 3,
};

// See DispatchWord.
enum DispatchHeaderWord : int32_t {
    kStatus = 0,              // kOk or a fault of its selections, to which the words up to kStatusValueHigh belong
    kStatusToken = 1,
    kStatusK = 2,
    kStatusValueLow = 3,
    kStatusValueHigh = 4,
    kFormat = 5,              // how rows travel: row_format
    kTopk = 6,
    kNumRows = 7,             // rows that follow for the receiver
    kNumSelections = 8,       // of its experts in them
    kNumTokens = 9,           // tokens of the source, whoever receives them
};

// See DispatchFlagWord.
enum DispatchFlagWord : int32_t {
    kFlagEpoch = 0,           // of the call
    kFlagSelection = 1,       // local expert << kOrderBits | order, or ~0 if it is another rank's
    kFlagWeight = 2,          // f32, or 0
    kFlagTag = 3,             // number of the row's first selection << kTokenBits | token
};

// See CombineWord.
enum CombineHeaderWord : int32_t {
    kDispatchEpoch = 0,       // of the dispatch whose tokens are combined
    kRowFormat = 1,           // how rows travel, from each selection or each rank: row_format
    kHasRows = 2,             // 0: the sender did not receive the owner's tokens in that dispatch
    kCombineStatus = 3,       // kOk, kExpertOutOfRange, kSelectionChanged or kHandleInvalid
    kCombineToken = 4,
    kCombineK = 5,
    kCombineValueLow = 6,
    kCombineValueHigh = 7,
};

// A rank and its peers; the same for every call, save for status and phases.
struct Group {
    Network network;
    uint64_t heap[32];                  // heaps as mapped here; 0: of another node
    uint64_t outbox;                    // bytes from the heap to where cells are composed for a network
    uint64_t state;                     // RankState
    uint64_t status;                    // StatusBlock, device address of mapped host memory
    uint64_t ran;                       // u64 of the operation: the launch it ran last
    uint64_t timed_out;                 // i32 [num_ranks] of mapped host memory: 1 if masked
    uint64_t gone;                      // i32 [num_ranks], host memory: 1 + the rank because of which one is lost, or 0
    uint64_t timeout_ns;                // of waits for a rank that has begun the call
    uint64_t start_timeout_ns;          // of waits for one that has yet to begin
    uint64_t acks_offset;               // u32 [num_ranks][kinds][parities]: a peer's received
    uint64_t header_offset[2];          // by Kind: u64 [epoch parity][rank][words]
    uint64_t header_parity_stride[2];   // bytes
    uint64_t header_rank_stride[2];     // bytes
    int32_t rank;
    int32_t num_ranks;
    int32_t mask_timed_out;             // a rank that does not come is masked, no fault
    int32_t phases;                     // Phases
};
static_assert(sizeof(Group) == 448);
static_assert(offsetof(Group, network) == 0);
static_assert(offsetof(Group, heap) == 56);
static_assert(offsetof(Group, outbox) == 312);
static_assert(offsetof(Group, state) == 320);
static_assert(offsetof(Group, status) == 328);
static_assert(offsetof(Group, ran) == 336);
static_assert(offsetof(Group, timed_out) == 344);
static_assert(offsetof(Group, gone) == 352);
static_assert(offsetof(Group, timeout_ns) == 360);
static_assert(offsetof(Group, start_timeout_ns) == 368);
static_assert(offsetof(Group, acks_offset) == 376);
static_assert(offsetof(Group, header_offset) == 384);
static_assert(offsetof(Group, header_parity_stride) == 400);
static_assert(offsetof(Group, header_rank_stride) == 416);
static_assert(offsetof(Group, rank) == 432);
static_assert(offsetof(Group, num_ranks) == 436);
static_assert(offsetof(Group, mask_timed_out) == 440);
static_assert(offsetof(Group, phases) == 444);

// A call between its halves.
struct Run {
    uint32_t epoch;
    uint32_t next_other;                // the first call of the other kind that comes after it
    uint32_t reached[1];                // ranks that its send half sent to
    uint32_t dispatch_epoch;            // combine: of its dispatch
    uint32_t expected[1];               // combine: ranks that were given this rank's tokens
    uint32_t reserved;
};
static_assert(sizeof(Run) == 24);
static_assert(offsetof(Run, epoch) == 0);
static_assert(offsetof(Run, next_other) == 4);
static_assert(offsetof(Run, reached) == 8);
static_assert(offsetof(Run, dispatch_epoch) == 12);
static_assert(offsetof(Run, expected) == 16);
static_assert(offsetof(Run, reserved) == 20);

// In device memory; zeroed by the host.
struct RankState {
    uint64_t launches;                  // the number of the last one
    uint32_t lost[1];                   // bit r: rank r timed out and is not to be masked: launches fail
    uint32_t masked[1];                 // bit r: rank r is neither sent to nor waited for
    uint32_t epoch[2];                  // by Kind: of the last call that was sent
    uint32_t arrivals;                  // blocks of the running launch that have read the above
    uint32_t reserved[1];
    uint32_t received[4];               // by kind and parity: the epoch whose slots are free again
    uint64_t decided[32];               // by rank: launch << 1 | gone, where blocks agree
    uint64_t claimed;                   // the launch whose fault is recorded
    uint64_t more_reserved;
    Run runs[2][4];
};
static_assert(sizeof(RankState) == 512);
static_assert(offsetof(RankState, launches) == 0);
static_assert(offsetof(RankState, lost) == 8);
static_assert(offsetof(RankState, masked) == 12);
static_assert(offsetof(RankState, epoch) == 16);
static_assert(offsetof(RankState, arrivals) == 24);
static_assert(offsetof(RankState, reserved) == 28);
static_assert(offsetof(RankState, received) == 32);
static_assert(offsetof(RankState, decided) == 48);
static_assert(offsetof(RankState, claimed) == 304);
static_assert(offsetof(RankState, more_reserved) == 312);
static_assert(offsetof(RankState, runs) == 320);

// A dispatch, beside its outputs; zeroed by the host.
struct Bank {
    uint64_t sent;                      // DispatchParams::dispatch of the latest, 0 for none
    uint64_t received;                  // the same, once all is received; 0 until then, or if it failed
    uint32_t epoch;
    uint32_t reserved;
    uint32_t reached[1];                // ranks that this rank's tokens were sent to
    uint32_t present[1];                // ranks whose tokens were received
    int32_t num_tokens[32];             // of each rank
    int32_t num_selections[32];         // from each rank
    int32_t num_rows[32];               // from each rank; for observers
};
static_assert(sizeof(Bank) == 416);
static_assert(offsetof(Bank, sent) == 0);
static_assert(offsetof(Bank, received) == 8);
static_assert(offsetof(Bank, epoch) == 16);
static_assert(offsetof(Bank, reserved) == 20);
static_assert(offsetof(Bank, reached) == 24);
static_assert(offsetof(Bank, present) == 28);
static_assert(offsetof(Bank, num_tokens) == 32);
static_assert(offsetof(Bank, num_selections) == 160);
static_assert(offsetof(Bank, num_rows) == 288);

// An output row, in its source's order of sending.
struct Selection {
    uint32_t place;                     // local expert << kRowBits | row of the expert
    uint32_t origin;                    // token << kTopkBits | k
};
static_assert(sizeof(Selection) == 8);
static_assert(offsetof(Selection, place) == 0);
static_assert(offsetof(Selection, origin) == 4);

// Selection k of a row that came with weights, at [k].
struct RowSelection {
    uint32_t place;                     // as in Selection, or ~0: of another rank, or none
    uint32_t weight;                    // the bits of an f32
};
static_assert(sizeof(RowSelection) == 8);
static_assert(offsetof(RowSelection, place) == 0);
static_assert(offsetof(RowSelection, weight) == 4);

// See lowlatency_dispatch.cu.
struct DispatchParams {
    Group group;
    uint64_t flag_offset;               // [parity][source][max_tokens]: flag_stride each
    uint64_t flag_parity_stride;        // bytes
    uint64_t flag_rank_stride;          // bytes
    uint64_t flag_stride;               // bytes: u32 DispatchFlagWord [topk][4]
    uint64_t row_offset;                // [parity][source][max_tokens]: row_stride each
    uint64_t row_parity_stride;         // bytes
    uint64_t row_rank_stride;           // bytes
    uint64_t x;                         // bf16 [num_tokens][hidden]
    uint64_t x_stride;                  // bytes
    uint64_t topk_idx;                  // i64 [num_tokens][topk]
    uint64_t topk_weights;              // f32 [num_tokens][topk], or 0
    uint64_t bank;                      // Bank
    uint64_t dispatch;                  // the host's number of this dispatch; replays have that of the capture
    uint64_t selections;                // Selection [num_ranks][max_tokens * max_topk]
    uint64_t sent_topk_idx;             // i32 [num_tokens][topk]: a copy of topk_idx
    uint64_t sent_items;                // with batches, u32 [num_tokens][topk]: selection << kTokenBits | row, there
    uint64_t row_selections;            // with weights: RowSelection [num_ranks][max_tokens][max_topk]
    uint64_t row_tokens;                // with weights: u32 [num_ranks][max_tokens]
    uint64_t out_x;                     // [local experts][num_ranks * max_tokens][hidden]
    uint64_t out_scales;                // [local experts][columns][num_ranks * max_tokens]
    uint64_t out_src_info;              // i32 [local experts][num_ranks * max_tokens]
    uint64_t out_layout_range;          // i64 [local experts][num_ranks]: begin << 32 | count
    uint64_t out_counts;                // i32 [local experts]
    uint64_t cumulative_stats;          // i32 [local experts], added to, or 0
    uint64_t wait_stats;                // i64 [num_ranks], ns, added to, or 0
    int32_t num_tokens;
    int32_t topk;
    int32_t num_experts;
    int32_t experts_per_rank;
    int32_t hidden;
    int32_t format;                     // Format
    int32_t max_tokens;
    int32_t max_topk;
    int32_t header_words;               // of a dispatch; even
    int32_t row_stride;                 // bytes, a multiple of 128; of this format
    int32_t selections_offset;          // in a row of a batch: u32 [topk], and a tag
    int32_t weights_offset;             // in a row of a batch: f32 [topk]
    int32_t counts_shared_offset;       // in dynamic shared memory
    int32_t row_shared_offset;          // in dynamic shared memory
    int32_t run;                        // of RankState::runs
    int32_t row_format;                 // how rows travel, compared with what peers say
};
static_assert(sizeof(DispatchParams) == 712);
static_assert(offsetof(DispatchParams, group) == 0);
static_assert(offsetof(DispatchParams, flag_offset) == 448);
static_assert(offsetof(DispatchParams, flag_parity_stride) == 456);
static_assert(offsetof(DispatchParams, flag_rank_stride) == 464);
static_assert(offsetof(DispatchParams, flag_stride) == 472);
static_assert(offsetof(DispatchParams, row_offset) == 480);
static_assert(offsetof(DispatchParams, row_parity_stride) == 488);
static_assert(offsetof(DispatchParams, row_rank_stride) == 496);
static_assert(offsetof(DispatchParams, x) == 504);
static_assert(offsetof(DispatchParams, x_stride) == 512);
static_assert(offsetof(DispatchParams, topk_idx) == 520);
static_assert(offsetof(DispatchParams, topk_weights) == 528);
static_assert(offsetof(DispatchParams, bank) == 536);
static_assert(offsetof(DispatchParams, dispatch) == 544);
static_assert(offsetof(DispatchParams, selections) == 552);
static_assert(offsetof(DispatchParams, sent_topk_idx) == 560);
static_assert(offsetof(DispatchParams, sent_items) == 568);
static_assert(offsetof(DispatchParams, row_selections) == 576);
static_assert(offsetof(DispatchParams, row_tokens) == 584);
static_assert(offsetof(DispatchParams, out_x) == 592);
static_assert(offsetof(DispatchParams, out_scales) == 600);
static_assert(offsetof(DispatchParams, out_src_info) == 608);
static_assert(offsetof(DispatchParams, out_layout_range) == 616);
static_assert(offsetof(DispatchParams, out_counts) == 624);
static_assert(offsetof(DispatchParams, cumulative_stats) == 632);
static_assert(offsetof(DispatchParams, wait_stats) == 640);
static_assert(offsetof(DispatchParams, num_tokens) == 648);
static_assert(offsetof(DispatchParams, topk) == 652);
static_assert(offsetof(DispatchParams, num_experts) == 656);
static_assert(offsetof(DispatchParams, experts_per_rank) == 660);
static_assert(offsetof(DispatchParams, hidden) == 664);
static_assert(offsetof(DispatchParams, format) == 668);
static_assert(offsetof(DispatchParams, max_tokens) == 672);
static_assert(offsetof(DispatchParams, max_topk) == 676);
static_assert(offsetof(DispatchParams, header_words) == 680);
static_assert(offsetof(DispatchParams, row_stride) == 684);
static_assert(offsetof(DispatchParams, selections_offset) == 688);
static_assert(offsetof(DispatchParams, weights_offset) == 692);
static_assert(offsetof(DispatchParams, counts_shared_offset) == 696);
static_assert(offsetof(DispatchParams, row_shared_offset) == 700);
static_assert(offsetof(DispatchParams, run) == 704);
static_assert(offsetof(DispatchParams, row_format) == 708);

// See lowlatency_combine.cu.
struct CombineParams {
    Group group;
    uint64_t flag_offset;               // u32 [parity][max_tokens][parts][source][max_topk]: epoch
    uint64_t flag_parity_stride;        // bytes
    uint64_t flag_token_stride;         // bytes
    uint64_t flag_part_stride;          // bytes
    uint64_t row_offset;                // [parity][source][max_tokens][max_topk]: row_stride each
    uint64_t row_parity_stride;         // bytes
    uint64_t row_rank_stride;           // bytes
    uint64_t row_stride;                // bytes
    uint64_t pack_offset;               // [parity][source]: packs, by token and k, or by token
    uint64_t pack_parity_stride;        // bytes
    uint64_t pack_rank_stride;          // bytes
    uint64_t pack_stride;               // bytes, of a row
    uint64_t x;                         // bf16 [local experts][num_ranks * max_tokens][hidden]
    uint64_t x_expert_stride;           // bytes
    uint64_t x_row_stride;              // bytes
    uint64_t bank;                      // Bank
    uint64_t dispatch;                  // what the bank must have received
    uint64_t selections;                // Selection [num_ranks][max_tokens * max_topk]
    uint64_t sent_topk_idx;             // i32 [num_tokens][topk] of the dispatch
    uint64_t sent_items;                // with batches: u32 [num_tokens][topk] of the dispatch
    uint64_t kept_items;                // the same, written for a receive half of its own, or 0
    uint64_t row_selections;            // pre-reduced: RowSelection [num_ranks][max_tokens][max_topk]
    uint64_t row_tokens;                // pre-reduced: u32 [num_ranks][max_tokens]
    uint64_t topk_idx;                  // i64 [num_tokens][topk]
    uint64_t topk_weights;              // f32 [num_tokens][topk]; pre-reduced: 0
    uint64_t out;                       // bf16 [num_tokens][hidden]
    uint64_t out_stride;                // bytes
    uint64_t wait_stats;                // i64 [num_ranks], ns, added to, or 0
    int32_t run;                        // of RankState::runs
    int32_t num_tokens;
    int32_t topk;
    int32_t num_experts;
    int32_t experts_per_rank;
    int32_t hidden;
    int32_t row_format;                 // how rows travel, compared with what peers say
    int32_t max_tokens;
    int32_t max_topk;
    int32_t reserved;
};
static_assert(sizeof(CombineParams) == 712);
static_assert(offsetof(CombineParams, group) == 0);
static_assert(offsetof(CombineParams, flag_offset) == 448);
static_assert(offsetof(CombineParams, flag_parity_stride) == 456);
static_assert(offsetof(CombineParams, flag_token_stride) == 464);
static_assert(offsetof(CombineParams, flag_part_stride) == 472);
static_assert(offsetof(CombineParams, row_offset) == 480);
static_assert(offsetof(CombineParams, row_parity_stride) == 488);
static_assert(offsetof(CombineParams, row_rank_stride) == 496);
static_assert(offsetof(CombineParams, row_stride) == 504);
static_assert(offsetof(CombineParams, pack_offset) == 512);
static_assert(offsetof(CombineParams, pack_parity_stride) == 520);
static_assert(offsetof(CombineParams, pack_rank_stride) == 528);
static_assert(offsetof(CombineParams, pack_stride) == 536);
static_assert(offsetof(CombineParams, x) == 544);
static_assert(offsetof(CombineParams, x_expert_stride) == 552);
static_assert(offsetof(CombineParams, x_row_stride) == 560);
static_assert(offsetof(CombineParams, bank) == 568);
static_assert(offsetof(CombineParams, dispatch) == 576);
static_assert(offsetof(CombineParams, selections) == 584);
static_assert(offsetof(CombineParams, sent_topk_idx) == 592);
static_assert(offsetof(CombineParams, sent_items) == 600);
static_assert(offsetof(CombineParams, kept_items) == 608);
static_assert(offsetof(CombineParams, row_selections) == 616);
static_assert(offsetof(CombineParams, row_tokens) == 624);
static_assert(offsetof(CombineParams, topk_idx) == 632);
static_assert(offsetof(CombineParams, topk_weights) == 640);
static_assert(offsetof(CombineParams, out) == 648);
static_assert(offsetof(CombineParams, out_stride) == 656);
static_assert(offsetof(CombineParams, wait_stats) == 664);
static_assert(offsetof(CombineParams, run) == 672);
static_assert(offsetof(CombineParams, num_tokens) == 676);
static_assert(offsetof(CombineParams, topk) == 680);
static_assert(offsetof(CombineParams, num_experts) == 684);
static_assert(offsetof(CombineParams, experts_per_rank) == 688);
static_assert(offsetof(CombineParams, hidden) == 692);
static_assert(offsetof(CombineParams, row_format) == 696);
static_assert(offsetof(CombineParams, max_tokens) == 700);
static_assert(offsetof(CombineParams, max_topk) == 704);
static_assert(offsetof(CombineParams, reserved) == 708);

// Read when the binary is loaded: its structs have to be Java's.
extern "C" {
__device__ uint64_t deepep_lowlatency_structs = 0xa5ddf6093be10f29;
}

}  // namespace deepep::lowlatency
