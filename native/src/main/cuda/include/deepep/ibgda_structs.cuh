// Generated from io.deepep.cuda.ibgda.IbgdaStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepep {

constexpr int kIbgdaBlockBytes = 64;
constexpr int kIbgdaErrorCompletion = 1;
constexpr int kIbgdaNoRoom = 2;
constexpr int kIbgdaNoTurn = 3;
constexpr int kIbgdaNoCompletion = 4;

// A queue pair. Indices of blocks only grow.
struct IbgdaQueue {
    uint64_t entries;                   // [num_blocks] of 64 bytes
    uint64_t record;                    // doorbell record: u32 [2]
    uint64_t doorbell;                  // u64: a register of the network card
    uint64_t completion;                // the latest completion, 64 bytes
    uint64_t landing;                   // u64 that atomics return to, in network memory
    uint64_t fault;                     // IbgdaFault, in mapped host memory
    uint64_t reserved;                  // blocks handed out to writers
    uint64_t ready;                     // blocks written
    uint64_t rung;                      // blocks that the card knows of
    uint64_t completed;                 // blocks known to be completed
    uint32_t number;                    // 24 bits
    uint32_t failed;                    // 1: nothing more is sent; the fault says why
    uint32_t local_key;                 // of this rank's network memory
    uint32_t remote_key;                // of the peer's
};
static_assert(sizeof(IbgdaQueue) == 96);
static_assert(offsetof(IbgdaQueue, entries) == 0);
static_assert(offsetof(IbgdaQueue, record) == 8);
static_assert(offsetof(IbgdaQueue, doorbell) == 16);
static_assert(offsetof(IbgdaQueue, completion) == 24);
static_assert(offsetof(IbgdaQueue, landing) == 32);
static_assert(offsetof(IbgdaQueue, fault) == 40);
static_assert(offsetof(IbgdaQueue, reserved) == 48);
static_assert(offsetof(IbgdaQueue, ready) == 56);
static_assert(offsetof(IbgdaQueue, rung) == 64);
static_assert(offsetof(IbgdaQueue, completed) == 72);
static_assert(offsetof(IbgdaQueue, number) == 80);
static_assert(offsetof(IbgdaQueue, failed) == 84);
static_assert(offsetof(IbgdaQueue, local_key) == 88);
static_assert(offsetof(IbgdaQueue, remote_key) == 92);

// A peer's network memory, as network cards name it.
struct IbgdaPeer {
    uint64_t base;
    int32_t rank;                       // for messages
    uint32_t padding;
};
static_assert(sizeof(IbgdaPeer) == 16);
static_assert(offsetof(IbgdaPeer, base) == 0);
static_assert(offsetof(IbgdaPeer, rank) == 8);
static_assert(offsetof(IbgdaPeer, padding) == 12);

// The queue pairs of a rank, in its memory.
struct IbgdaQueues {
    uint64_t queues;                    // IbgdaQueue [num_nodes][queues_per_node]
    uint64_t peers;                     // IbgdaPeer [num_nodes]
    uint64_t timeout_ns;                // how long to wait for the network card
    uint32_t queues_per_node;
    uint32_t num_blocks;                // of each queue: a power of two from 256 to 32768
    uint32_t batch;                     // blocks after which a doorbell is rung in any case
    uint32_t padding;
};
static_assert(sizeof(IbgdaQueues) == 40);
static_assert(offsetof(IbgdaQueues, queues) == 0);
static_assert(offsetof(IbgdaQueues, peers) == 8);
static_assert(offsetof(IbgdaQueues, timeout_ns) == 16);
static_assert(offsetof(IbgdaQueues, queues_per_node) == 24);
static_assert(offsetof(IbgdaQueues, num_blocks) == 28);
static_assert(offsetof(IbgdaQueues, batch) == 32);
static_assert(offsetof(IbgdaQueues, padding) == 36);

// Why a queue pair has failed. `kind` comes last.
struct IbgdaFault {
    uint32_t kind;                      // kIbgda...
    int32_t peer;                       // rank
    uint32_t queue;                     // its number
    uint32_t syndrome;                  // of the completion
    uint32_t vendor_syndrome;
    uint32_t entry;                     // the completion's 16 bits
    uint64_t waited_for;                // index of the block that had to be completed, or written
};
static_assert(sizeof(IbgdaFault) == 32);
static_assert(offsetof(IbgdaFault, kind) == 0);
static_assert(offsetof(IbgdaFault, peer) == 4);
static_assert(offsetof(IbgdaFault, queue) == 8);
static_assert(offsetof(IbgdaFault, syndrome) == 12);
static_assert(offsetof(IbgdaFault, vendor_syndrome) == 16);
static_assert(offsetof(IbgdaFault, entry) == 20);
static_assert(offsetof(IbgdaFault, waited_for) == 24);

}  // namespace deepep
