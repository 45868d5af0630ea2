// An entry of a send queue, whoever wrote it: posted by verbs, or read from a queue in mlx5's format.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

namespace card {

enum class Operation : uint8_t { kNop, kWrite, kRead, kSend, kCompareSwap, kFetchAdd };

struct Segment {
    uint64_t address;
    uint32_t key;
    uint32_t num_bytes;
};

// A masked atomic: compare-and-swap exchanges the bits of swap_mask if those of compare_mask are equal; an addition
// carries no further than the bits of `boundary`. Values are in this machine's byte order.
struct Atomic {
    uint8_t num_bytes = 8;  // of the word, 4 or 8
    bool big_endian_result = false;
    uint64_t add_or_swap = 0;
    uint64_t compare = 0;
    uint64_t swap_mask = ~0ull;
    uint64_t compare_mask_or_boundary = 0;

    // The word after the operation.
    uint64_t apply(Operation operation, uint64_t word) const;
};

struct Work {
    Operation operation = Operation::kNop;
    bool wants_completion = false;
    bool has_immediate = false;
    bool is_inline = false;
    uint8_t opcode = 0;      // as its completion reports it
    uint32_t immediate = 0;  // big-endian, as it crosses the wire
    uint64_t id = 0;         // verbs: the user's
    uint16_t index = 0;      // mlx5: of its first block
    uint16_t num_blocks = 1;
    uint64_t remote_address = 0;
    uint32_t remote_key = 0;
    uint32_t dc_queue = 0;  // dynamically connected: the target
    uint64_t dc_key = 0;
    std::vector<Segment> segments;
    std::vector<uint8_t> data;  // inline
    Atomic atomic;

    uint64_t num_bytes() const;
};

// A send queue in mlx5's format: blocks of 64 bytes in a ring.
struct EntryRing {
    const uint8_t* blocks;
    uint32_t num_blocks;  // a power of two
    bool dynamically_connected;
    bool compact_address_vector;

    // Reads the entry whose first block is `index`; says why it cannot.
    bool decode(uint32_t index, uint32_t queue, Work& work, std::string& error) const;
};

}  // namespace card
