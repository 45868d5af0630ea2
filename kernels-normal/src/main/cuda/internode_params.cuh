// Parameters of the normal-mode kernels across nodes, by value from the host.
#pragma once

#include "deepep/network.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// The ranks between nodes, and the routing of a dispatch. `group` beside it is this rank's node.
struct Internode {
    Network network;       // peers are the ranks with this nvlRank
    Cells headers;         // i32: header words, counts per rank, counts of the node's experts; two by epoch parity
    Cells header_flags;    // u64 [2]
    Cells records;         // [max_tokens][record_bytes], see internode_meta.cuh
    Cells record_flags;    // u64 [kMaxBlocks]
    Cells slots;           // rows: [num_channels][num_slots][slot_bytes]
    Cells tails;           // u64 [num_channels]: epoch | rows that the peer has put into the ring here << 32
    Cells heads;           // u64 [num_channels]: epoch | rows that the peer has taken from its ring << 32
    uint64_t header_bytes; // from a header to that of the other parity
    uint64_t plan;         // Plan, zeroed once by the host
    uint64_t block_counts; // i32 [number of blocks][num_nodes][8] workspace: tokens to each rank, by block
    uint64_t block_bases;  // i32 [number of blocks][num_nodes][8] workspace: where a block's rows begin at each rank
    uint64_t own_rows;     // NodeRows [num_nodes][num_tokens] of this rank's tokens: written; read when cached
    uint64_t forward_rows; // NodeRows [num_nodes][max_tokens] of the peers' tokens on this node: likewise
    uint64_t source_tokens; // i32 [num_nodes]: tokens of the peer on each node: likewise
    uint64_t dispatch_epoch; // u32: epoch of the dispatch that wrote these: likewise
    int32_t max_tokens;
    int32_t num_ranks;     // of all nodes
    int32_t record_bytes;  // a multiple of 16
    int32_t slot_bytes;    // a multiple of 128
    int32_t num_channels;  // rings per node
    int32_t num_slots;     // of a ring, a multiple of send_chunk and at least twice that
    int32_t send_chunk;    // rows put, or taken, before the peer is told
    int32_t reserved;
};
static_assert(sizeof(Internode) == 32 + 7 * 16 + 8 * 8 + 8 * 4);

// Rows of a token at the ranks of one node, -1 where it does not go.
struct alignas(16) NodeRows {
    int32_t row[kMaxRanks];
};

// In an array [num_nodes][num_tokens].
__device__ __forceinline__ NodeRows* node_rows(uint64_t rows, int num_tokens, int node, int t) {
    return at<NodeRows>(rows) + static_cast<size_t>(node) * num_tokens + t;
}

// Eight rows as they are loaded, to be looked at when they are there.
struct LoadedRows {
    int4 low, high;

    __device__ bool go_anywhere() const {  // not all -1
        return (low.x & low.y & low.z & low.w & high.x & high.y & high.z & high.w) >= 0;
    }
};

__device__ __forceinline__ LoadedRows load_rows(const NodeRows* rows) {
    auto v = reinterpret_cast<const int4*>(rows);
    return {v[0], v[1]};
}

__device__ __forceinline__ LoadedRows no_rows() { return {make_int4(-1, -1, -1, -1), make_int4(-1, -1, -1, -1)}; }

// What one block concludes from the headers for all blocks of its rank.
struct Plan {
    uint64_t verdict;  // epoch | code << 32
    int32_t num_rows;  // dispatch: rows that this rank receives
    int32_t reserved;
};

// See internode_dispatch.cuh. In `local`, token_rows is not used, token_order is NodeRows [num_nodes][num_tokens], and
// bases_offset is that of the nodes' counters.
struct InternodeDispatchParams {
    DispatchParams local;
    Internode between;
};

// See internode_combine.cuh. In `local`, token_rows is not used.
struct InternodeCombineParams {
    CombineParams local;
    Internode between;
};
static_assert(offsetof(InternodeDispatchParams, between) == sizeof(DispatchParams));
static_assert(offsetof(InternodeCombineParams, between) == sizeof(CombineParams));

}  // namespace deepep::normal
