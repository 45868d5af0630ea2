// Generated from io.deepep.cuda.kernel.NetworkStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepep {

// One cell for each node, in network memory.
struct Cells {
    uint64_t offset;                    // of the cell of node 0, from the base of network memory
    uint64_t stride;                    // bytes
};
static_assert(sizeof(Cells) == 16);
static_assert(offsetof(Cells, offset) == 0);
static_assert(offsetof(Cells, stride) == 8);

// A rank and its peers on other nodes.
struct Network {
    uint64_t base;                      // this rank's network memory
    uint64_t peers;                     // u64 [num_nodes]: the peers' as mapped here; 0: not mapped
    uint64_t outbox;                    // not mapped: bytes from a cell to where it is composed
    uint64_t queues;                    // of a network card: IbgdaQueues
    uint64_t rails;                     // where ranks may be masked: RailTable
    int32_t node;                       // of this rank
    int32_t num_nodes;
    int32_t first_pe;                   // not mapped: the library's number of the peer on node 0
    int32_t pe_stride;                  // and from that to the peer on the next node
};
static_assert(sizeof(Network) == 56);
static_assert(offsetof(Network, base) == 0);
static_assert(offsetof(Network, peers) == 8);
static_assert(offsetof(Network, outbox) == 16);
static_assert(offsetof(Network, queues) == 24);
static_assert(offsetof(Network, rails) == 32);
static_assert(offsetof(Network, node) == 40);
static_assert(offsetof(Network, num_nodes) == 44);
static_assert(offsetof(Network, first_pe) == 48);
static_assert(offsetof(Network, pe_stride) == 52);

}  // namespace deepep
