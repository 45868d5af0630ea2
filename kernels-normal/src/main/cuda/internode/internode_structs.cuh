// Generated from io.deepep.normal.cuda.kernels.InternodeStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

#include "deepep/network_structs.cuh"
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
    Cells heads;
    Cells endings;
    uint64_t header_bytes;              // from a header to that of the other parity
    uint64_t plan;                      // Plan, zeroed once by the host
    uint64_t block_counts;              // i32 [blocks][num_nodes][node_places] workspace
    uint64_t block_bases;               // i32 [blocks][num_nodes][node_places] workspace
    uint64_t own_rows;                  // NodeRows [num_nodes][num_tokens]: written; read if cached
    uint64_t forward_rows;              // NodeRows [cells][max_tokens]: written; read if cached
    uint64_t source_tokens;             // i32 [cells]: tokens of each home: written; read if cached
    int32_t max_tokens;
    int32_t num_ranks;                  // of all nodes
    int32_t record_bytes;               // a multiple of 16
    int32_t slot_bytes;                 // a multiple of 128
    int32_t num_channels;               // rings for each peer
    int32_t num_slots;                  // of a ring, a multiple of send_chunk, at least twice that
    int32_t send_chunk;                 // rows put, or taken, before the peer is told
    int32_t num_home_blocks;            // combine: the first blocks, see CombineRoles
    int32_t node_places;                // words of NodeRows; read in large nodes
    int32_t reserved;
};
static_assert(sizeof(Internode) == 272);
static_assert(offsetof(Internode, network) == 0);
static_assert(offsetof(Internode, headers) == 48);
static_assert(offsetof(Internode, header_flags) == 64);
static_assert(offsetof(Internode, records) == 80);
static_assert(offsetof(Internode, record_flags) == 96);
static_assert(offsetof(Internode, slots) == 112);
static_assert(offsetof(Internode, tails) == 128);
static_assert(offsetof(Internode, heads) == 144);
static_assert(offsetof(Internode, endings) == 160);
static_assert(offsetof(Internode, header_bytes) == 176);
static_assert(offsetof(Internode, plan) == 184);
static_assert(offsetof(Internode, block_counts) == 192);
static_assert(offsetof(Internode, block_bases) == 200);
static_assert(offsetof(Internode, own_rows) == 208);
static_assert(offsetof(Internode, forward_rows) == 216);
static_assert(offsetof(Internode, source_tokens) == 224);
static_assert(offsetof(Internode, max_tokens) == 232);
static_assert(offsetof(Internode, num_ranks) == 236);
static_assert(offsetof(Internode, record_bytes) == 240);
static_assert(offsetof(Internode, slot_bytes) == 244);
static_assert(offsetof(Internode, num_channels) == 248);
static_assert(offsetof(Internode, num_slots) == 252);
static_assert(offsetof(Internode, send_chunk) == 256);
static_assert(offsetof(Internode, num_home_blocks) == 260);
static_assert(offsetof(Internode, node_places) == 264);
static_assert(offsetof(Internode, reserved) == 268);

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
static_assert(sizeof(InternodeDispatchParams) == 704);
static_assert(offsetof(InternodeDispatchParams, local) == 0);
static_assert(offsetof(InternodeDispatchParams, between) == 432);

// See internode_combine.cuh.
struct InternodeCombineParams {
    CombineParams local;
    Internode between;
};
static_assert(sizeof(InternodeCombineParams) == 624);
static_assert(offsetof(InternodeCombineParams, local) == 0);
static_assert(offsetof(InternodeCombineParams, between) == 352);

// A rank that rows are exchanged with; see Rails.Ends.
struct RailEnd {
    uint64_t memory;                    // its network memory as mapped here
    int32_t rank;                       // -1: none
    int32_t cell;                       // of that memory, in which this rank writes
};
static_assert(sizeof(RailEnd) == 16);
static_assert(offsetof(RailEnd, memory) == 0);
static_assert(offsetof(RailEnd, rank) == 8);
static_assert(offsetof(RailEnd, cell) == 12);

// A rank; see Masks and Rails.
struct RailRank {
    uint64_t memory;                    // its network memory as mapped here
    int32_t is_masked;
    int32_t is_reached;                 // by tokens of this rank
    int32_t is_contact;                 // of another node, and headers and endings are exchanged
    int32_t reserved;
};
static_assert(sizeof(RailRank) == 24);
static_assert(offsetof(RailRank, memory) == 0);
static_assert(offsetof(RailRank, is_masked) == 8);
static_assert(offsetof(RailRank, is_reached) == 12);
static_assert(offsetof(RailRank, is_contact) == 16);
static_assert(offsetof(RailRank, reserved) == 20);

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
    int32_t word;                       // Masks.word
    int32_t neighbours;                 // bit r: rank r of this node is masked
};
static_assert(sizeof(RailTable) == 56);
static_assert(offsetof(RailTable, forwarders) == 0);
static_assert(offsetof(RailTable, homes) == 8);
static_assert(offsetof(RailTable, ranks) == 16);
static_assert(offsetof(RailTable, num_nodes) == 24);
static_assert(offsetof(RailTable, num_cells) == 28);
static_assert(offsetof(RailTable, num_ranks) == 32);
static_assert(offsetof(RailTable, own) == 36);
static_assert(offsetof(RailTable, first) == 40);
static_assert(offsetof(RailTable, ends_together) == 44);
static_assert(offsetof(RailTable, word) == 48);
static_assert(offsetof(RailTable, neighbours) == 52);

// Read when the binary is loaded: its structs have to be Java's.
extern "C" {
__device__ uint64_t deepep_internode_structs = 0xace59920656f0def;
}

}  // namespace deepep::normal
