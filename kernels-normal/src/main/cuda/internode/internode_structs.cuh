// Generated from io.deepep.normal.cuda.kernels.InternodeStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

#include "deepep/network_structs.cuh"
#include "deepep/ibgda_structs.cuh"
#include "../shared/normal_structs.cuh"

namespace deepep::normal {

// What lies between nodes, and the routing.
struct Internode {
    Network network;
    Cells headers;
    Cells header_flags;
    Cells records;
    Cells record_flags;
    Cells slots;
    Cells tails;
    Cells totals;
    Cells heads;
    Cells endings;
    uint64_t header_bytes;              // from a header to that of the other parity
    uint64_t plan;                      // Plan, zeroed once by the host
    uint64_t block_counts;              // i32 [blocks][num_nodes][node_places] workspace
    uint64_t block_bases;               // i32 [blocks][num_nodes][node_places] workspace
    uint64_t own_rows;                  // NodeRows [num_nodes][num_tokens]: written; read if cached
    uint64_t forward_rows;              // NodeRows [cells][max_tokens]: written; read by combine
    uint64_t source_tokens;             // i32 [cells]: tokens of each home: written; read by combine
    int32_t max_tokens;
    int32_t num_ranks;                  // of all nodes
    int32_t record_bytes;               // a multiple of 16
    int32_t slot_bytes;                 // a multiple of 16
    int32_t num_channels;               // rings for each peer
    int32_t num_slots;                  // of a ring, a multiple of send_chunk, at least twice that
    int32_t send_chunk;                 // rows put, or taken, before the peer is told
    int32_t num_home_blocks;            // combine: the first blocks, see CombineRoles
    int32_t node_places;                // words of NodeRows; read in large nodes
    int32_t reserved;
};
static_assert(sizeof(Internode) == 296);
static_assert(offsetof(Internode, network) == 0);
static_assert(offsetof(Internode, headers) == 56);
static_assert(offsetof(Internode, header_flags) == 72);
static_assert(offsetof(Internode, records) == 88);
static_assert(offsetof(Internode, record_flags) == 104);
static_assert(offsetof(Internode, slots) == 120);
static_assert(offsetof(Internode, tails) == 136);
static_assert(offsetof(Internode, totals) == 152);
static_assert(offsetof(Internode, heads) == 168);
static_assert(offsetof(Internode, endings) == 184);
static_assert(offsetof(Internode, header_bytes) == 200);
static_assert(offsetof(Internode, plan) == 208);
static_assert(offsetof(Internode, block_counts) == 216);
static_assert(offsetof(Internode, block_bases) == 224);
static_assert(offsetof(Internode, own_rows) == 232);
static_assert(offsetof(Internode, forward_rows) == 240);
static_assert(offsetof(Internode, source_tokens) == 248);
static_assert(offsetof(Internode, max_tokens) == 256);
static_assert(offsetof(Internode, num_ranks) == 260);
static_assert(offsetof(Internode, record_bytes) == 264);
static_assert(offsetof(Internode, slot_bytes) == 268);
static_assert(offsetof(Internode, num_channels) == 272);
static_assert(offsetof(Internode, num_slots) == 276);
static_assert(offsetof(Internode, send_chunk) == 280);
static_assert(offsetof(Internode, num_home_blocks) == 284);
static_assert(offsetof(Internode, node_places) == 288);
static_assert(offsetof(Internode, reserved) == 292);

// What one block concludes for all blocks of its rank.
struct Plan {
    uint64_t verdict;                   // epoch | code << 32
    int32_t num_rows;                   // dispatch: rows that this rank receives
    int32_t ends_together;              // all nodes tell each other how the call ended
};
static_assert(sizeof(Plan) == 16);
static_assert(offsetof(Plan, verdict) == 0);
static_assert(offsetof(Plan, num_rows) == 8);
static_assert(offsetof(Plan, ends_together) == 12);

// See internode_dispatch.cuh.
struct InternodeDispatchParams {
    DispatchParams local;
    Internode between;
};
static_assert(sizeof(InternodeDispatchParams) == 712);
static_assert(offsetof(InternodeDispatchParams, local) == 0);
static_assert(offsetof(InternodeDispatchParams, between) == 416);

// See internode_combine.cuh.
struct InternodeCombineParams {
    CombineParams local;
    Internode between;
};
static_assert(sizeof(InternodeCombineParams) == 664);
static_assert(offsetof(InternodeCombineParams, local) == 0);
static_assert(offsetof(InternodeCombineParams, between) == 368);

// How another rank is reached.
struct RailWay {
    uint64_t reach;                     // its network memory as mapped here, or IbgdaQueues that lead to it
    int32_t place;                      // of it in these, or its number in a library's world
    int32_t reserved;
};
static_assert(sizeof(RailWay) == 16);
static_assert(offsetof(RailWay, reach) == 0);
static_assert(offsetof(RailWay, place) == 8);
static_assert(offsetof(RailWay, reserved) == 12);

// A rank that rows are exchanged with; see Rails.Ends.
struct RailEnd {
    RailWay way;
    int32_t rank;                       // -1: none
    int32_t cell;                       // of its network memory, in which this rank writes
};
static_assert(sizeof(RailEnd) == 24);
static_assert(offsetof(RailEnd, way) == 0);
static_assert(offsetof(RailEnd, rank) == 16);
static_assert(offsetof(RailEnd, cell) == 20);

// A rank; see Masks and Rails.
struct RailRank {
    RailWay way;
    int32_t is_masked;
    int32_t is_reached;                 // by tokens of this rank
    int32_t is_contact;                 // of another node, and headers and endings are exchanged
    int32_t reserved;
};
static_assert(sizeof(RailRank) == 32);
static_assert(offsetof(RailRank, way) == 0);
static_assert(offsetof(RailRank, is_masked) == 16);
static_assert(offsetof(RailRank, is_reached) == 20);
static_assert(offsetof(RailRank, is_contact) == 24);
static_assert(offsetof(RailRank, reserved) == 28);

// Who serves whom while ranks may be masked.
struct RailTable {
    uint64_t forwarders;                // RailEnd [num_nodes]
    uint64_t homes;                     // RailEnd [num_cells]
    uint64_t ranks;                     // RailRank [num_ranks]
    int32_t num_nodes;
    int32_t num_cells;                  // of rows in a rank's network memory
    int32_t num_ranks;                  // of all nodes
    int32_t own;                        // this rank
    int32_t first;                      // the lowest rank that is not masked
    int32_t ends_together;              // all nodes tell each other how each call ended
};
static_assert(sizeof(RailTable) == 48);
static_assert(offsetof(RailTable, forwarders) == 0);
static_assert(offsetof(RailTable, homes) == 8);
static_assert(offsetof(RailTable, ranks) == 16);
static_assert(offsetof(RailTable, num_nodes) == 24);
static_assert(offsetof(RailTable, num_cells) == 28);
static_assert(offsetof(RailTable, num_ranks) == 32);
static_assert(offsetof(RailTable, own) == 36);
static_assert(offsetof(RailTable, first) == 40);
static_assert(offsetof(RailTable, ends_together) == 44);

// Read when the binary is loaded: its structs have to be Java's.
extern "C" {
__device__ uint64_t deepep_internode_structs = 0xc3b5e4413201a90a;
}

}  // namespace deepep::normal
