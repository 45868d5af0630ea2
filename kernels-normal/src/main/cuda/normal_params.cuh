// Parameters of the normal-mode kernels, by value from the host, and the private state of a rank.
// Every offset and stride is computed by the host: the device only indexes. Offsets are bytes from a rank's heap base.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepep::normal {

constexpr int kMaxRanks = 8;
constexpr int kMaxTopk = 32;
constexpr int kMaxBlocks = 256;
constexpr int kThreads = 512;        // layout, dispatch and expand
constexpr int kFlagStrideBytes = 128;

// Words of a header, each stored as epoch | word << 32; counts per rank follow at kHeaderCounts, one warp wide in all,
// then the counts of the receiver's experts.
enum HeaderWord : int {
    kOp = 0,
    kNumExperts = 1,
    kHidden = 2,
    kRowBytes = 3,
    kTopk = 4,
    kNumScales = 5,
    kHasWeights = 6,
    kNumCompared = 7,  // the words before this one must agree on all ranks
    kStatus = 7,
    kStatusToken = 8,
    kStatusK = 9,
    kStatusValueLow = 10,
    kStatusValueHigh = 11,
    kRowLimit = 12,     // dispatch: rows this rank can take. combine: rows this rank offers
    kXLow = 13,         // combine: offset in the heap, or address where kXAbsolute is set
    kXHigh = 14,
    kXStride = 15,      // bytes
    kXAbsolute = 16,
    kWeightsLow = 17,
    kWeightsHigh = 18,
    kWeightsStride = 19,  // floats
    kWeightsAbsolute = 20,
    kHeaderCounts = 24,
    kHeaderWords = 32,
};

enum Op : int32_t { kOpDispatch = 1, kOpCachedDispatch = 2, kOpCombine = 3 };

// A rank and its peers; the same for every call of a buffer, save for the status block.
struct Group {
    uint64_t heap[kMaxRanks];  // peers' heaps as mapped on this GPU; heap[rank] is this rank's own
    uint64_t state;            // LocalState, zeroed once by the host
    uint64_t status;           // StatusBlock, device address of mapped host memory
    uint64_t timeout_ns;
    uint64_t header_offset;         // headers: [2 (epoch parity)][num_ranks (source)][32 + experts per rank] words
    uint64_t header_parity_stride;  // bytes
    uint64_t header_rank_stride;    // bytes
    uint64_t meta_flag_offset;      // u64 per source, kFlagStrideBytes apart
    uint64_t done_flag_offset;      // likewise
    int32_t rank;
    int32_t num_ranks;
};
static_assert(sizeof(Group) == 136);
static_assert(offsetof(Group, state) == 64 && offsetof(Group, timeout_ns) == 80);
static_assert(offsetof(Group, header_offset) == 88 && offsetof(Group, done_flag_offset) == 120);
static_assert(offsetof(Group, rank) == 128);

struct LocalState {
    uint64_t barrier;          // generation of the grid barrier of expand
    uint64_t bad_expert;       // ~(token << 8 | k) of the first bad selection, 0 for none
    uint32_t epoch;            // of the last call that ended
    uint32_t claimed_epoch;    // the epoch whose fault record has been claimed
    uint32_t code;             // first fault of this epoch
    uint32_t cursor;           // tokens handed out, beyond the first of each copy warp or block
    uint32_t layout_arrivals;  // blocks; each counter returns to 0 when all are there
    uint32_t meta_arrivals;
    uint32_t exit_arrivals;
    uint32_t barrier_arrivals;
    int32_t block_counts[kMaxBlocks][kMaxRanks];  // tokens to each rank, by block
};
static_assert(sizeof(LocalState) == 48 + 8192);
static_assert(offsetof(LocalState, epoch) == 16 && offsetof(LocalState, block_counts) == 48);

// See normal_dispatch.cu.
struct DispatchParams {
    Group group;
    uint64_t recv_offset;            // rows: [capacity][row_stride]
    uint64_t recv_src_offset;        // i32 [capacity]
    uint64_t recv_topk_offset;       // i32 [capacity][topk], rank-local expert or -1
    uint64_t recv_weights_offset;    // f32 [capacity][topk], 0 where not local
    uint64_t x;                      // [num_tokens], x_bytes each
    uint64_t x_stride;               // bytes
    uint64_t scales;                 // f32 [num_tokens][num_scales]
    uint64_t scales_token_stride;    // floats
    uint64_t scales_group_stride;    // floats
    uint64_t topk_idx;               // i64 [num_tokens][topk]; 0: is_token_in_rank is given instead
    uint64_t topk_weights;           // f32 [num_tokens][topk], or 0
    uint64_t is_token_in_rank;       // bool (1 byte) [num_tokens][num_ranks], or 0
    uint64_t token_rows;             // i32 [num_tokens][num_ranks], -1 where not sent: written; read when cached
    uint64_t token_order;            // i32 [num_tokens][num_ranks] workspace, or 0 when cached
    uint64_t expert_hist;            // u32 [num_experts] workspace, zeroed once by the host
    uint64_t out_topk_idx;           // i64 [num_rows or num_worst_rows][topk], or 0
    uint64_t out_topk_weights;       // f32, likewise, or 0
    uint64_t out_src_idx;            // i32 [num_rows], or 0
    uint64_t out_expert_counts;      // i32 [experts per rank], aligned, or 0
    uint64_t out_raw_expert_counts;  // i32 [experts per rank], or 0
    uint64_t out_source_rows;        // i32 [num_ranks + 1]: source s owns rows [s] .. [s + 1], or 0
    uint64_t out_num_rows;           // i32, or 0
    uint64_t host_expert_counts;     // i32 [experts per rank] mapped host memory, aligned, or 0
    int32_t num_tokens;
    int32_t topk;            // 0 without topk_idx
    int32_t num_experts;     // 0 without topk_idx
    int32_t expert_alignment;
    int32_t hidden;
    int32_t x_bytes;         // of a row of x
    int32_t num_scales;      // 0: none
    int32_t scales_offset;   // in a row, bytes
    int32_t row_stride;      // bytes, a multiple of 128
    int32_t row_limit;       // rows this rank takes: capacity, or num_worst_rows if that is less
    int32_t num_worst_rows;  // rows of out_topk_idx to fill with -1 past the received ones; 0: none
    int32_t num_copy_warps;  // 1 .. 15
    int32_t cached;          // token_rows is read, no counting, no metadata
    int32_t expanded_limit;  // rows the expanded layout can take; 0: not asked for
    int32_t bases_offset;    // in dynamic shared memory, see the launch shape; multiples of 128
    int32_t stages_offset;
};
constexpr int kDispatchStages = 2;
static_assert(sizeof(DispatchParams) == 136 + 23 * 8 + 16 * 4);
static_assert(offsetof(DispatchParams, recv_offset) == 136 && offsetof(DispatchParams, x) == 168);
static_assert(offsetof(DispatchParams, token_rows) == 232 && offsetof(DispatchParams, out_topk_idx) == 256);
static_assert(offsetof(DispatchParams, host_expert_counts) == 312 && offsetof(DispatchParams, num_tokens) == 320);
static_assert(offsetof(DispatchParams, expanded_limit) == 372 && offsetof(DispatchParams, stages_offset) == 380);

// See normal_combine.cu.
struct CombineParams {
    Group group;
    uint64_t x;                  // rows this rank offers: offset in the heap, or address where x_absolute is set
    uint64_t x_stride;           // bytes; x and x_stride are multiples of 16
    uint64_t weights;            // f32 [num_rows][topk]: offset or address; ignored where topk = 0
    uint64_t weights_stride;     // floats
    uint64_t token_rows;         // i32 [num_tokens][num_ranks] of the dispatch, -1 where not sent
    uint64_t bias[2];            // bf16 [num_tokens][hidden], or 0
    uint64_t bias_stride[2];     // bytes
    uint64_t out;                // bf16 [num_tokens][hidden]
    uint64_t out_stride;         // bytes
    uint64_t out_weights;        // f32 [num_tokens][topk], or 0
    int32_t x_absolute;
    int32_t weights_absolute;
    int32_t num_rows;            // rows of x that peers may read
    int32_t num_tokens;
    int32_t hidden;
    int32_t topk;                // 0: no weights
    int32_t chunk_bytes;         // a row is summed in chunks of this size, a multiple of 16, at most 16384
    int32_t num_chunks;          // ceil(hidden * 2 / chunk_bytes)
    int32_t num_slots;           // chunks in shared memory: num_slots * chunk_bytes, 8 .. kMaxSlots
    int32_t reserved;
};
constexpr int kMaxSlots = 64;
static_assert(sizeof(CombineParams) == 136 + 12 * 8 + 10 * 4);
static_assert(offsetof(CombineParams, token_rows) == 168 && offsetof(CombineParams, out) == 208);
static_assert(offsetof(CombineParams, x_absolute) == 232 && offsetof(CombineParams, num_slots) == 264);

// See normal_expand.cu. Addresses, not offsets: it works on this rank alone.
struct ExpandParams {
    Group group;
    uint64_t rows;                 // received rows: [*num_rows][row_stride]
    uint64_t topk;                 // i32 [*num_rows][num_topk], rank-local expert or -1; 0 for kCopyRows
    uint64_t weights;              // f32 [*num_rows][num_topk], or 0
    uint64_t num_rows;             // i32
    uint64_t raw_expert_counts;    // i32 [num_local_experts]
    uint64_t block_hist;           // u32 [number of blocks][num_local_experts] workspace
    uint64_t expanded_rows;        // i32 [*num_rows][num_topk]: written by kBuildMap, read by kUseMap
    uint64_t out_x;                // x_bytes each
    uint64_t out_x_stride;         // bytes
    uint64_t out_scales;           // f32, or 0
    uint64_t out_scales_token_stride;  // floats
    uint64_t out_scales_group_stride;  // floats
    uint64_t out_weights;          // f32 [expanded rows], or 0
    int32_t mode;                  // ExpandMode
    int32_t num_topk;
    int32_t num_local_experts;
    int32_t expert_alignment;
    int32_t out_limit;             // rows of out_x
    int32_t x_bytes;
    int32_t num_scales;
    int32_t scales_offset;         // in a row, bytes
    int32_t row_stride;            // bytes
    int32_t num_copy_warps;        // 1 .. 16
    int32_t stages_offset;         // in dynamic shared memory, bytes, a multiple of 128
    int32_t reserved;
};
enum ExpandMode : int32_t { kCopyRows = 0, kBuildMap = 1, kUseMap = 2 };
static_assert(sizeof(ExpandParams) == 136 + 13 * 8 + 12 * 4);
static_assert(offsetof(ExpandParams, out_x) == 192 && offsetof(ExpandParams, mode) == 240);

// See normal_stage.cu. Addresses, not offsets.
struct StageParams {
    uint64_t x;               // bf16 [rows][hidden]
    uint64_t x_stride;        // bytes
    uint64_t out;             // bf16 [*num_rows][hidden], 16-byte aligned as is its stride
    uint64_t out_stride;      // bytes
    uint64_t num_rows;        // i32
    uint64_t expanded_rows;   // i32 [*num_rows][topk], or 0: rows are copied one to one
    uint64_t weights;         // f32 [*num_rows][topk], of the expanded layout f32 [rows], or 0
    uint64_t out_weights;     // f32 [*num_rows][topk]
    int32_t hidden;
    int32_t topk;
};
static_assert(sizeof(StageParams) == 8 * 8 + 2 * 4 && offsetof(StageParams, hidden) == 64);

// See normal_layout.cu.
struct LayoutParams {
    uint64_t topk_idx;             // i64 [num_tokens][topk]
    uint64_t out_tokens_per_rank;    // i32 [num_ranks], zeroed by the caller
    uint64_t out_tokens_per_expert;  // i32 [num_experts], zeroed by the caller
    uint64_t out_is_token_in_rank;   // bool (1 byte) [num_tokens][num_ranks]
    uint64_t out_bad_selection;      // u64, zeroed by the caller: ~(token << 8 | k) of the first bad one, or 0
    int32_t num_tokens;
    int32_t topk;
    int32_t num_experts;
    int32_t num_ranks;
};
static_assert(sizeof(LayoutParams) == 5 * 8 + 4 * 4 && offsetof(LayoutParams, num_tokens) == 40);

}  // namespace deepep::normal
