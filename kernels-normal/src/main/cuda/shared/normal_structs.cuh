// Generated from io.deepep.normal.cuda.kernels.NormalStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

#include "deepep/status_block.cuh"

namespace deepep::normal {

constexpr int kMaxRanks = 8;
constexpr int kMaxTopk = 32;
constexpr int kMaxBlocks = 256;
constexpr int kThreads = 512;
constexpr int kMaxThreads = 1024;
constexpr int kFirstEpoch = 2;
constexpr int kFlagStrideBytes = 128;
constexpr int kHeaderWords = 32;
constexpr int kHeaderCounts = 24;
constexpr int kNumCompared = 11;
constexpr int kAllInPlace = -1;
constexpr int kNoRoom = -2;
constexpr int kWaitsPerRank = 2;
constexpr int kDispatchStages = 2;
constexpr int kRowStages = 3;
constexpr int kVectors = 2;
constexpr int kMaxConsumers = 512;
constexpr int kServiceWarps = 2;
constexpr int kInternodeServiceWarps = 3;
constexpr int kStageWarps = 4;
constexpr int kStageDepth = 3;
constexpr int kChunksPerBatch = 8;
constexpr int kRingStateBytes = 32;
constexpr int kLayoutKeyBits = 8;
constexpr int kRingsShift = 24;

// See HeaderWord.
enum HeaderWord : int {
    kMasked = 0,              // bit r for rank r, or a hash: see Masks
    kOp = 1,
    kNumExperts = 2,
    kHidden = 3,
    kRowBytes = 4,
    kTopk = 5,
    kNumScales = 6,
    kHasWeights = 7,
    kHandleEpoch = 8,         // cached dispatch and combine: the call whose routing is used
    kNumBlocks = 9,           // several nodes
    kNumSlots = 10,           // several nodes: of a ring; from kRingsShift on, rings of a channel
    kStatus = 11,             // the words before this one must agree on all ranks
    kStatusToken = 12,
    kStatusK = 13,
    kStatusValueLow = 14,
    kStatusValueHigh = 15,
    kRowLimit = 16,           // dispatch: rows this rank can take. combine: rows this rank offers
    kXLow = 17,               // combine: offset in the heap, or address where kXAbsolute is set
    kXHigh = 18,
    kXStride = 19,            // bytes
    kXAbsolute = 20,
    kWeightsLow = 21,
    kWeightsHigh = 22,
    kWeightsStride = 23,      // floats
    kNumTokens = 24,          // several nodes, where counts follow the words
    kExpandedLimited = 25,    // several nodes: this rank takes a limited number of expanded rows
};

// See DoneWord.
enum DoneWord : int {
    kDoneFlag = 0,            // epoch | code << 32
    kDoneDetail = 1,          // if the code is not kOk: whom the rank gave up on, or rows
    kDoneCulprit = 2,         // the rank that the code is about
    kDoneSince = 3,           // the first of the calls without kOk that this one ends
    kDoneWaiting = 4,         // epoch | beat << 32: for which beat others have yet to begin, or 0
    kDoneHeard = 5,           // its reader's: beat | own beat << 32, when that changed
};

// See NormalCall.
enum Op : int32_t {
    kOpDispatch = 1,
    kOpCachedDispatch = 2,
    kOpCombine = 3,
};

// See WaitIdx.
enum WaitIdx : int {
    kWaitForHeader = 0,
    kWaitForEnd = 1,
};

// See ExpandMode.
enum ExpandMode : int32_t {
    kCopyRows = 0,
    kBuildMap = 1,
    kUseMap = 2,
};

// A rank and its peers of one node; only the status differs by call.
struct Group {
    uint64_t heap[8];                   // peers' heaps as mapped here
    uint64_t state;                     // LocalState, zeroed once by the host
    uint64_t status;                    // StatusBlock, device address of mapped host memory
    uint64_t timeout_ns;                // of waits once all ranks are in the call
    uint64_t start_timeout_ns;          // of waits for the headers of ranks that have yet to begin
    uint64_t header_offset;             // [epoch parity][source][32 + experts per rank] u64
    uint64_t header_parity_stride;      // bytes
    uint64_t header_rank_stride;        // bytes
    uint64_t meta_flag_offset;          // u64 per source, kFlagStrideBytes apart
    uint64_t done_flag_offset;          // u64 by DoneWord per source, kFlagStrideBytes apart
    uint64_t waits;                     // u64 [all ranks][kWaitsPerRank], ns, by WaitIdx, in host memory; or 0
    uint64_t gone;                      // i32 [all ranks] in host memory: 1 + who is to blame for its absence, or 0
    int32_t rank;                       // within the node
    int32_t num_ranks;                  // of the node
    int32_t first_rank;                 // of the node, among all ranks
    int32_t reserved;
};
static_assert(sizeof(Group) == 168);
static_assert(offsetof(Group, heap) == 0);
static_assert(offsetof(Group, state) == 64);
static_assert(offsetof(Group, status) == 72);
static_assert(offsetof(Group, timeout_ns) == 80);
static_assert(offsetof(Group, start_timeout_ns) == 88);
static_assert(offsetof(Group, header_offset) == 96);
static_assert(offsetof(Group, header_parity_stride) == 104);
static_assert(offsetof(Group, header_rank_stride) == 112);
static_assert(offsetof(Group, meta_flag_offset) == 120);
static_assert(offsetof(Group, done_flag_offset) == 128);
static_assert(offsetof(Group, waits) == 136);
static_assert(offsetof(Group, gone) == 144);
static_assert(offsetof(Group, rank) == 152);
static_assert(offsetof(Group, num_ranks) == 156);
static_assert(offsetof(Group, first_rank) == 160);
static_assert(offsetof(Group, reserved) == 164);

// A rank's own; zeroed once by the host.
struct LocalState {
    uint64_t barrier;                   // generation of the grid barrier of expand
    uint64_t bad_selection;             // ~(token << 8 | k) of the first bad one, or 0
    uint64_t detail;                    // of the fault `code`, for the peers
    uint64_t culprit;                   // the rank that the fault is about, for the peers
    uint32_t epoch;                     // of the last call that ended
    uint32_t claimed_epoch;             // the epoch whose fault record has been claimed
    uint32_t code;                      // first fault of this epoch
    uint32_t cursor;                    // tokens handed out, beyond each copy warp's first
    uint32_t stage_cursor;              // batches of staged rows handed out
    uint32_t layout_arrivals;           // blocks; each counter returns to 0
    uint32_t meta_arrivals;
    uint32_t exit_arrivals;
    uint32_t barrier_arrivals;
    uint32_t waiting_epoch;             // the epoch in which this rank has said that it waits
    uint32_t waiting_beat;              // when it said last that others have yet to begin
    uint32_t masked;                    // Masks.word, which ranks compare
    uint32_t masked_ranks[1];           // of the node: Masks.words
    uint32_t told_since;                // the first of the calls that ended with a code until now, or 0
    int32_t block_counts[256][8];       // tokens to each rank
};
static_assert(sizeof(LocalState) == 8280);
static_assert(offsetof(LocalState, barrier) == 0);
static_assert(offsetof(LocalState, bad_selection) == 8);
static_assert(offsetof(LocalState, detail) == 16);
static_assert(offsetof(LocalState, culprit) == 24);
static_assert(offsetof(LocalState, epoch) == 32);
static_assert(offsetof(LocalState, claimed_epoch) == 36);
static_assert(offsetof(LocalState, code) == 40);
static_assert(offsetof(LocalState, cursor) == 44);
static_assert(offsetof(LocalState, stage_cursor) == 48);
static_assert(offsetof(LocalState, layout_arrivals) == 52);
static_assert(offsetof(LocalState, meta_arrivals) == 56);
static_assert(offsetof(LocalState, exit_arrivals) == 60);
static_assert(offsetof(LocalState, barrier_arrivals) == 64);
static_assert(offsetof(LocalState, waiting_epoch) == 68);
static_assert(offsetof(LocalState, waiting_beat) == 72);
static_assert(offsetof(LocalState, masked) == 76);
static_assert(offsetof(LocalState, masked_ranks) == 80);
static_assert(offsetof(LocalState, told_since) == 84);
static_assert(offsetof(LocalState, block_counts) == 88);

// See normal_dispatch.cu.
struct DispatchParams {
    Group group;
    uint64_t recv_offset;               // rows: [capacity][row_stride]
    uint64_t recv_topk_offset;          // i32 [capacity][topk], rank-local expert or -1
    uint64_t recv_weights_offset;       // f32 [capacity][topk], 0 where not local
    uint64_t x;                         // [num_tokens], x_bytes each
    uint64_t x_stride;                  // bytes
    uint64_t scales;                    // f32 [num_tokens][num_scales]
    uint64_t scales_token_stride;       // floats
    uint64_t scales_group_stride;       // floats
    uint64_t topk_idx;                  // i64 [num_tokens][topk]; 0: is_token_in_rank decides
    uint64_t topk_weights;              // f32 [num_tokens][topk], or 0
    uint64_t is_token_in_rank;          // bool [num_tokens][num_ranks], or 0
    uint64_t tokens_per_rank;           // i32 [num_ranks] that the layout claims, or 0
    uint64_t tokens_per_expert;         // i32 [num_experts] that the layout claims, or 0
    uint64_t token_rows;                // i32 [num_tokens][num_ranks], -1: not sent; read if cached
    uint64_t token_order;               // i32 [num_tokens][num_ranks] workspace, 0 if cached
    uint64_t expert_hist;               // u32 [num_experts] workspace, zeroed once by the host
    uint64_t handle_epoch;              // u64: epoch of the routing | masked << 32, 0: none; read if cached
    uint64_t out_topk_idx;              // i64 [num_rows or num_worst_rows][topk], or 0
    uint64_t out_topk_weights;          // f32 [num_rows or num_worst_rows][topk], or 0
    uint64_t out_raw_expert_counts;     // i32 [experts per rank], or 0
    uint64_t out_source_rows;           // i32 [num_ranks + 1]; [num_ranks][2]: first row to a rank, count; or 0
    uint64_t out_num_rows;              // i32, or 0
    uint64_t host_expert_counts;        // i32 [experts per rank] in host memory, or 0
    int32_t num_tokens;
    int32_t topk;                       // 0 without topk_idx
    int32_t num_experts;                // 0 without topk_idx
    int32_t expert_alignment;
    int32_t hidden;
    int32_t x_bytes;                    // of a row of x
    int32_t num_scales;                 // 0: none
    int32_t scales_offset;              // in a row, bytes
    int32_t row_stride;                 // bytes, a multiple of 128
    int32_t row_limit;                  // rows this rank takes: capacity or num_worst_rows
    int32_t num_worst_rows;             // rows of out_topk_idx to fill with -1; 0: none
    int32_t num_copy_warps;             // 1 .. 15; several nodes: 2, 4 or 8
    int32_t cached;                     // token_rows is read, no counting, no metadata
    int32_t expanded_limit;             // rows the expanded layout takes; 0: all that come
    int32_t bases_offset;               // in dynamic shared memory, a multiple of 128
    int32_t stages_offset;              // in dynamic shared memory, a multiple of 128
};
static_assert(sizeof(DispatchParams) == 416);
static_assert(offsetof(DispatchParams, group) == 0);
static_assert(offsetof(DispatchParams, recv_offset) == 168);
static_assert(offsetof(DispatchParams, recv_topk_offset) == 176);
static_assert(offsetof(DispatchParams, recv_weights_offset) == 184);
static_assert(offsetof(DispatchParams, x) == 192);
static_assert(offsetof(DispatchParams, x_stride) == 200);
static_assert(offsetof(DispatchParams, scales) == 208);
static_assert(offsetof(DispatchParams, scales_token_stride) == 216);
static_assert(offsetof(DispatchParams, scales_group_stride) == 224);
static_assert(offsetof(DispatchParams, topk_idx) == 232);
static_assert(offsetof(DispatchParams, topk_weights) == 240);
static_assert(offsetof(DispatchParams, is_token_in_rank) == 248);
static_assert(offsetof(DispatchParams, tokens_per_rank) == 256);
static_assert(offsetof(DispatchParams, tokens_per_expert) == 264);
static_assert(offsetof(DispatchParams, token_rows) == 272);
static_assert(offsetof(DispatchParams, token_order) == 280);
static_assert(offsetof(DispatchParams, expert_hist) == 288);
static_assert(offsetof(DispatchParams, handle_epoch) == 296);
static_assert(offsetof(DispatchParams, out_topk_idx) == 304);
static_assert(offsetof(DispatchParams, out_topk_weights) == 312);
static_assert(offsetof(DispatchParams, out_raw_expert_counts) == 320);
static_assert(offsetof(DispatchParams, out_source_rows) == 328);
static_assert(offsetof(DispatchParams, out_num_rows) == 336);
static_assert(offsetof(DispatchParams, host_expert_counts) == 344);
static_assert(offsetof(DispatchParams, num_tokens) == 352);
static_assert(offsetof(DispatchParams, topk) == 356);
static_assert(offsetof(DispatchParams, num_experts) == 360);
static_assert(offsetof(DispatchParams, expert_alignment) == 364);
static_assert(offsetof(DispatchParams, hidden) == 368);
static_assert(offsetof(DispatchParams, x_bytes) == 372);
static_assert(offsetof(DispatchParams, num_scales) == 376);
static_assert(offsetof(DispatchParams, scales_offset) == 380);
static_assert(offsetof(DispatchParams, row_stride) == 384);
static_assert(offsetof(DispatchParams, row_limit) == 388);
static_assert(offsetof(DispatchParams, num_worst_rows) == 392);
static_assert(offsetof(DispatchParams, num_copy_warps) == 396);
static_assert(offsetof(DispatchParams, cached) == 400);
static_assert(offsetof(DispatchParams, expanded_limit) == 404);
static_assert(offsetof(DispatchParams, bases_offset) == 408);
static_assert(offsetof(DispatchParams, stages_offset) == 412);

// See normal_combine.cu.
struct CombineParams {
    Group group;
    uint64_t x;                         // rows this rank offers: heap offset, or address if x_absolute
    uint64_t x_stride;                  // bytes
    uint64_t weights;                   // f32 [num_rows][topk], given as x is; ignored where topk = 0
    uint64_t weights_stride;            // floats
    uint64_t stage_x;                   // rows that this launch brings to x, 16-byte aligned, or 0
    uint64_t stage_x_stride;            // bytes, a multiple of 16
    uint64_t staged_flag_offset;        // u64 [stager][batch of rows]
    uint64_t staged_flag_stride;        // bytes from one stager's to the next one's
    uint64_t source_rows;               // out_source_rows of the dispatch; read if a rank has stage_x
    uint64_t token_rows;                // i32 [num_tokens][num_ranks] of the dispatch
    uint64_t handle_epoch;              // u64: epoch of the routing | masked << 32, 0: none
    uint64_t bias[2];                   // bf16 [num_tokens][hidden], or 0
    uint64_t bias_stride[2];            // bytes
    uint64_t out;                       // bf16 [num_tokens][hidden]
    uint64_t out_stride;                // bytes
    uint64_t out_weights;               // f32 [num_tokens][topk], or 0
    int32_t x_absolute;
    int32_t num_rows;                   // rows of x that peers may read
    int32_t num_tokens;
    int32_t hidden;
    int32_t topk;                       // 0: no weights
    int32_t chunk_bytes;                // rows are summed in such chunks; <= 16384, 16-aligned
    int32_t num_chunks;                 // ceil(hidden * 2 / chunk_bytes)
    int32_t slot_bytes;                 // of shared memory for a chunk
    int32_t row_bytes;                  // of a row as it travels, with its padding
    int32_t num_slots;                  // chunks in shared memory, at least 12
    int32_t batch_rows;                 // rows of a batch that is staged
    int32_t num_stage_blocks;           // blocks that stage, fewer than the launch has; or 0
    int32_t room;                       // rows of the region at x, if stage_x
    int32_t rings_offset;               // several nodes: in dynamic shared memory
};
static_assert(sizeof(CombineParams) == 368);
static_assert(offsetof(CombineParams, group) == 0);
static_assert(offsetof(CombineParams, x) == 168);
static_assert(offsetof(CombineParams, x_stride) == 176);
static_assert(offsetof(CombineParams, weights) == 184);
static_assert(offsetof(CombineParams, weights_stride) == 192);
static_assert(offsetof(CombineParams, stage_x) == 200);
static_assert(offsetof(CombineParams, stage_x_stride) == 208);
static_assert(offsetof(CombineParams, staged_flag_offset) == 216);
static_assert(offsetof(CombineParams, staged_flag_stride) == 224);
static_assert(offsetof(CombineParams, source_rows) == 232);
static_assert(offsetof(CombineParams, token_rows) == 240);
static_assert(offsetof(CombineParams, handle_epoch) == 248);
static_assert(offsetof(CombineParams, bias) == 256);
static_assert(offsetof(CombineParams, bias_stride) == 272);
static_assert(offsetof(CombineParams, out) == 288);
static_assert(offsetof(CombineParams, out_stride) == 296);
static_assert(offsetof(CombineParams, out_weights) == 304);
static_assert(offsetof(CombineParams, x_absolute) == 312);
static_assert(offsetof(CombineParams, num_rows) == 316);
static_assert(offsetof(CombineParams, num_tokens) == 320);
static_assert(offsetof(CombineParams, hidden) == 324);
static_assert(offsetof(CombineParams, topk) == 328);
static_assert(offsetof(CombineParams, chunk_bytes) == 332);
static_assert(offsetof(CombineParams, num_chunks) == 336);
static_assert(offsetof(CombineParams, slot_bytes) == 340);
static_assert(offsetof(CombineParams, row_bytes) == 344);
static_assert(offsetof(CombineParams, num_slots) == 348);
static_assert(offsetof(CombineParams, batch_rows) == 352);
static_assert(offsetof(CombineParams, num_stage_blocks) == 356);
static_assert(offsetof(CombineParams, room) == 360);
static_assert(offsetof(CombineParams, rings_offset) == 364);

// See normal_expand.cu. Addresses, not offsets.
struct ExpandParams {
    Group group;
    uint64_t rows;                      // received rows: [*num_rows][row_stride]
    uint64_t topk;                      // i32 [*num_rows][num_topk], local expert or -1; 0: kCopyRows
    uint64_t weights;                   // f32 [*num_rows][num_topk], or 0
    uint64_t num_rows;                  // i32
    uint64_t raw_expert_counts;         // i32 [num_local_experts]
    uint64_t block_hist;                // u32 [blocks][num_local_experts] workspace
    uint64_t expanded_rows;             // i32 [*num_rows][num_topk]: kBuildMap writes it
    uint64_t out_x;                     // x_bytes each
    uint64_t out_x_stride;              // bytes
    uint64_t out_scales;                // f32, or 0
    uint64_t out_scales_token_stride;   // floats
    uint64_t out_scales_group_stride;   // floats
    uint64_t out_weights;               // f32 [expanded rows], or 0
    uint64_t out_expert_offsets;        // i32 [num_local_experts + 1]: kBuildMap writes it
    int32_t mode;                       // ExpandMode
    int32_t num_topk;
    int32_t num_local_experts;
    int32_t expert_alignment;
    int32_t out_limit;                  // rows of out_x
    int32_t x_bytes;
    int32_t num_scales;
    int32_t scales_offset;              // in a row, bytes
    int32_t row_stride;                 // bytes
    int32_t num_copy_warps;             // 1 .. 16
    int32_t stages_offset;              // in dynamic shared memory, a multiple of 128
    int32_t reserved;
};
static_assert(sizeof(ExpandParams) == 328);
static_assert(offsetof(ExpandParams, group) == 0);
static_assert(offsetof(ExpandParams, rows) == 168);
static_assert(offsetof(ExpandParams, topk) == 176);
static_assert(offsetof(ExpandParams, weights) == 184);
static_assert(offsetof(ExpandParams, num_rows) == 192);
static_assert(offsetof(ExpandParams, raw_expert_counts) == 200);
static_assert(offsetof(ExpandParams, block_hist) == 208);
static_assert(offsetof(ExpandParams, expanded_rows) == 216);
static_assert(offsetof(ExpandParams, out_x) == 224);
static_assert(offsetof(ExpandParams, out_x_stride) == 232);
static_assert(offsetof(ExpandParams, out_scales) == 240);
static_assert(offsetof(ExpandParams, out_scales_token_stride) == 248);
static_assert(offsetof(ExpandParams, out_scales_group_stride) == 256);
static_assert(offsetof(ExpandParams, out_weights) == 264);
static_assert(offsetof(ExpandParams, out_expert_offsets) == 272);
static_assert(offsetof(ExpandParams, mode) == 280);
static_assert(offsetof(ExpandParams, num_topk) == 284);
static_assert(offsetof(ExpandParams, num_local_experts) == 288);
static_assert(offsetof(ExpandParams, expert_alignment) == 292);
static_assert(offsetof(ExpandParams, out_limit) == 296);
static_assert(offsetof(ExpandParams, x_bytes) == 300);
static_assert(offsetof(ExpandParams, num_scales) == 304);
static_assert(offsetof(ExpandParams, scales_offset) == 308);
static_assert(offsetof(ExpandParams, row_stride) == 312);
static_assert(offsetof(ExpandParams, num_copy_warps) == 316);
static_assert(offsetof(ExpandParams, stages_offset) == 320);
static_assert(offsetof(ExpandParams, reserved) == 324);

// See normal_stage.cu and normal_cast.cu. Addresses, not offsets.
struct StageParams {
    uint64_t x;                         // bf16, or fp8 if there are scales [rows][hidden]
    uint64_t x_stride;                  // bytes
    uint64_t scales;                    // f32 [rows][hidden / 128] of fp8, or 0
    uint64_t scales_row_stride;         // floats
    uint64_t scales_group_stride;       // floats
    uint64_t out;                       // rows [*num_rows], 16-byte aligned as is their stride
    uint64_t out_stride;                // bytes
    uint64_t num_rows;                  // i32
    uint64_t expanded_rows;             // i32 [*num_rows][topk]; 0: rows are copied one to one
    uint64_t weights;                   // f32 [*num_rows][topk]; expanded: f32 [rows]; or 0
    uint64_t out_weights;               // f32 [*num_rows][topk]
    uint64_t source_rows;               // i32 [num_sources + 1]: s owns [s] .. [s + 1]; 0: all rows are copied
    int32_t hidden;
    int32_t topk;
    int32_t num_sources;                // ranks of all nodes
    int32_t num_ranks;                  // of the node; rows of sources s = rank mod num_ranks stay
    int32_t rank;                       // within the node
    int32_t x_rows;                     // rows of x
};
static_assert(sizeof(StageParams) == 120);
static_assert(offsetof(StageParams, x) == 0);
static_assert(offsetof(StageParams, x_stride) == 8);
static_assert(offsetof(StageParams, scales) == 16);
static_assert(offsetof(StageParams, scales_row_stride) == 24);
static_assert(offsetof(StageParams, scales_group_stride) == 32);
static_assert(offsetof(StageParams, out) == 40);
static_assert(offsetof(StageParams, out_stride) == 48);
static_assert(offsetof(StageParams, num_rows) == 56);
static_assert(offsetof(StageParams, expanded_rows) == 64);
static_assert(offsetof(StageParams, weights) == 72);
static_assert(offsetof(StageParams, out_weights) == 80);
static_assert(offsetof(StageParams, source_rows) == 88);
static_assert(offsetof(StageParams, hidden) == 96);
static_assert(offsetof(StageParams, topk) == 100);
static_assert(offsetof(StageParams, num_sources) == 104);
static_assert(offsetof(StageParams, num_ranks) == 108);
static_assert(offsetof(StageParams, rank) == 112);
static_assert(offsetof(StageParams, x_rows) == 116);

// See normal_layout.cu. Counters start zeroed.
struct LayoutParams {
    uint64_t topk_idx;                  // i64 [num_tokens][topk]
    uint64_t out_tokens_per_rank;       // i32 [num_ranks]
    uint64_t out_tokens_per_node;       // i32 [num_nodes]
    uint64_t out_tokens_per_expert;     // i32 [num_experts]
    uint64_t out_is_token_in_rank;      // bool [num_tokens][num_ranks]
    uint64_t out_bad_selection;         // u64: ~(token << 8 | k) of the first bad one
    int32_t num_tokens;
    int32_t topk;
    int32_t num_experts;
    int32_t num_nodes;                  // num_ranks is num_nodes * ranks_per_node
    int32_t ranks_per_node;
    int32_t reserved;
};
static_assert(sizeof(LayoutParams) == 72);
static_assert(offsetof(LayoutParams, topk_idx) == 0);
static_assert(offsetof(LayoutParams, out_tokens_per_rank) == 8);
static_assert(offsetof(LayoutParams, out_tokens_per_node) == 16);
static_assert(offsetof(LayoutParams, out_tokens_per_expert) == 24);
static_assert(offsetof(LayoutParams, out_is_token_in_rank) == 32);
static_assert(offsetof(LayoutParams, out_bad_selection) == 40);
static_assert(offsetof(LayoutParams, num_tokens) == 48);
static_assert(offsetof(LayoutParams, topk) == 52);
static_assert(offsetof(LayoutParams, num_experts) == 56);
static_assert(offsetof(LayoutParams, num_nodes) == 60);
static_assert(offsetof(LayoutParams, ranks_per_node) == 64);
static_assert(offsetof(LayoutParams, reserved) == 68);

// Read when the binary is loaded: its structs have to be Java's.
extern "C" {
__device__ uint64_t deepep_normal_structs = 0xf976e179492b7d29;
}

}  // namespace deepep::normal
