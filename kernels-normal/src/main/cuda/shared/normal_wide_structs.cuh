// Generated from io.deepep.normal.cuda.kernels.NormalStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

#include "deepep/status_block.cuh"

namespace deepep::normal {

constexpr int kMaxRanks = 72;
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
    uint64_t heap[72];                  // peers' heaps as mapped here
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
static_assert(sizeof(Group) == 680);
static_assert(offsetof(Group, heap) == 0);
static_assert(offsetof(Group, state) == 576);
static_assert(offsetof(Group, status) == 584);
static_assert(offsetof(Group, timeout_ns) == 592);
static_assert(offsetof(Group, start_timeout_ns) == 600);
static_assert(offsetof(Group, header_offset) == 608);
static_assert(offsetof(Group, header_parity_stride) == 616);
static_assert(offsetof(Group, header_rank_stride) == 624);
static_assert(offsetof(Group, meta_flag_offset) == 632);
static_assert(offsetof(Group, done_flag_offset) == 640);
static_assert(offsetof(Group, waits) == 648);
static_assert(offsetof(Group, gone) == 656);
static_assert(offsetof(Group, rank) == 664);
static_assert(offsetof(Group, num_ranks) == 668);
static_assert(offsetof(Group, first_rank) == 672);
static_assert(offsetof(Group, reserved) == 676);

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
    uint32_t masked_ranks[3];           // of the node: Masks.words
    uint32_t told_since;                // the first of the calls that ended with a code until now, or 0
    int32_t block_counts[256][72];      // tokens to each rank
};
static_assert(sizeof(LocalState) == 73824);
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
static_assert(offsetof(LocalState, told_since) == 92);
static_assert(offsetof(LocalState, block_counts) == 96);

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
static_assert(sizeof(DispatchParams) == 928);
static_assert(offsetof(DispatchParams, group) == 0);
static_assert(offsetof(DispatchParams, recv_offset) == 680);
static_assert(offsetof(DispatchParams, recv_topk_offset) == 688);
static_assert(offsetof(DispatchParams, recv_weights_offset) == 696);
static_assert(offsetof(DispatchParams, x) == 704);
static_assert(offsetof(DispatchParams, x_stride) == 712);
static_assert(offsetof(DispatchParams, scales) == 720);
static_assert(offsetof(DispatchParams, scales_token_stride) == 728);
static_assert(offsetof(DispatchParams, scales_group_stride) == 736);
static_assert(offsetof(DispatchParams, topk_idx) == 744);
static_assert(offsetof(DispatchParams, topk_weights) == 752);
static_assert(offsetof(DispatchParams, is_token_in_rank) == 760);
static_assert(offsetof(DispatchParams, tokens_per_rank) == 768);
static_assert(offsetof(DispatchParams, tokens_per_expert) == 776);
static_assert(offsetof(DispatchParams, token_rows) == 784);
static_assert(offsetof(DispatchParams, token_order) == 792);
static_assert(offsetof(DispatchParams, expert_hist) == 800);
static_assert(offsetof(DispatchParams, handle_epoch) == 808);
static_assert(offsetof(DispatchParams, out_topk_idx) == 816);
static_assert(offsetof(DispatchParams, out_topk_weights) == 824);
static_assert(offsetof(DispatchParams, out_raw_expert_counts) == 832);
static_assert(offsetof(DispatchParams, out_source_rows) == 840);
static_assert(offsetof(DispatchParams, out_num_rows) == 848);
static_assert(offsetof(DispatchParams, host_expert_counts) == 856);
static_assert(offsetof(DispatchParams, num_tokens) == 864);
static_assert(offsetof(DispatchParams, topk) == 868);
static_assert(offsetof(DispatchParams, num_experts) == 872);
static_assert(offsetof(DispatchParams, expert_alignment) == 876);
static_assert(offsetof(DispatchParams, hidden) == 880);
static_assert(offsetof(DispatchParams, x_bytes) == 884);
static_assert(offsetof(DispatchParams, num_scales) == 888);
static_assert(offsetof(DispatchParams, scales_offset) == 892);
static_assert(offsetof(DispatchParams, row_stride) == 896);
static_assert(offsetof(DispatchParams, row_limit) == 900);
static_assert(offsetof(DispatchParams, num_worst_rows) == 904);
static_assert(offsetof(DispatchParams, num_copy_warps) == 908);
static_assert(offsetof(DispatchParams, cached) == 912);
static_assert(offsetof(DispatchParams, expanded_limit) == 916);
static_assert(offsetof(DispatchParams, bases_offset) == 920);
static_assert(offsetof(DispatchParams, stages_offset) == 924);

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
static_assert(sizeof(CombineParams) == 880);
static_assert(offsetof(CombineParams, group) == 0);
static_assert(offsetof(CombineParams, x) == 680);
static_assert(offsetof(CombineParams, x_stride) == 688);
static_assert(offsetof(CombineParams, weights) == 696);
static_assert(offsetof(CombineParams, weights_stride) == 704);
static_assert(offsetof(CombineParams, stage_x) == 712);
static_assert(offsetof(CombineParams, stage_x_stride) == 720);
static_assert(offsetof(CombineParams, staged_flag_offset) == 728);
static_assert(offsetof(CombineParams, staged_flag_stride) == 736);
static_assert(offsetof(CombineParams, source_rows) == 744);
static_assert(offsetof(CombineParams, token_rows) == 752);
static_assert(offsetof(CombineParams, handle_epoch) == 760);
static_assert(offsetof(CombineParams, bias) == 768);
static_assert(offsetof(CombineParams, bias_stride) == 784);
static_assert(offsetof(CombineParams, out) == 800);
static_assert(offsetof(CombineParams, out_stride) == 808);
static_assert(offsetof(CombineParams, out_weights) == 816);
static_assert(offsetof(CombineParams, x_absolute) == 824);
static_assert(offsetof(CombineParams, num_rows) == 828);
static_assert(offsetof(CombineParams, num_tokens) == 832);
static_assert(offsetof(CombineParams, hidden) == 836);
static_assert(offsetof(CombineParams, topk) == 840);
static_assert(offsetof(CombineParams, chunk_bytes) == 844);
static_assert(offsetof(CombineParams, num_chunks) == 848);
static_assert(offsetof(CombineParams, slot_bytes) == 852);
static_assert(offsetof(CombineParams, row_bytes) == 856);
static_assert(offsetof(CombineParams, num_slots) == 860);
static_assert(offsetof(CombineParams, batch_rows) == 864);
static_assert(offsetof(CombineParams, num_stage_blocks) == 868);
static_assert(offsetof(CombineParams, room) == 872);
static_assert(offsetof(CombineParams, rings_offset) == 876);

// Read when the binary is loaded: its structs have to be Java's.
extern "C" {
__device__ uint64_t deepep_normal_structs = 0xe01293099ca0c5ef;
}

}  // namespace deepep::normal
