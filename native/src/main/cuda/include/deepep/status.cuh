// What a kernel tells the host: a block of mapped host memory per launch.
//
// The kernel writes `ready` once the counts are known and `done` as its last word; each holds epoch | code << 32.
// Everything else in the block is written before the word that announces it. A block belongs to one launch in
// flight: the host reads it after `done`, or lets the next replay of a graph overwrite it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepep {

enum Code : uint32_t {
    kOk = 0,
    kExpertOutOfRange = 1,   // rank; token, k, seen = the expert
    kHeaderMismatch = 2,     // rank; k = index of the header word, expected = rank 0's, seen = that rank's
    kTooManyRows = 3,        // rank = receiver; expected = its limit, seen = rows
    kTimeout = 4,            // rank waited for peer in phase; expected, seen = flag words
    kPeerAborted = 5,        // peer gave up this epoch in an earlier call of its own; seen = its code
    kOutOfStep = 6,          // peer is ahead: expected, seen = epochs
    kTooManyExpanded = 7,    // this rank only: expected = limit, seen = rows
    kRowOutOfRange = 8,      // this rank only: peer published `expected` rows, the handle names row `seen`
    kGridNotResident = 9,    // the blocks of one launch did not run together
};

enum Phase : uint32_t { kPhaseNone = 0, kPhaseHeader = 1, kPhaseMeta = 2, kPhaseDone = 3, kPhaseGrid = 4 };

struct StatusBlock {
    uint64_t ready;
    uint64_t done;
    int32_t num_rows;           // rows this rank receives
    int32_t num_expanded_rows;  // sum of the aligned expert counts
    uint32_t code;
    uint32_t phase;
    int32_t rank;
    int32_t peer;
    int32_t token;
    int32_t k;
    int64_t expected;
    int64_t seen;
};

static_assert(sizeof(StatusBlock) == 64);
static_assert(offsetof(StatusBlock, num_rows) == 16 && offsetof(StatusBlock, code) == 24);
static_assert(offsetof(StatusBlock, rank) == 32 && offsetof(StatusBlock, token) == 40);
static_assert(offsetof(StatusBlock, expected) == 48 && offsetof(StatusBlock, seen) == 56);

struct Fault {
    uint32_t code = kOk;
    uint32_t phase = kPhaseNone;
    int32_t rank = 0;
    int32_t peer = -1;
    int32_t token = -1;
    int32_t k = -1;
    int64_t expected = 0;
    int64_t seen = 0;
};

__host__ __device__ __forceinline__ uint64_t pack_word(uint32_t epoch, uint32_t value) {
    return static_cast<uint64_t>(value) << 32 | epoch;
}

__host__ __device__ __forceinline__ uint32_t word_epoch(uint64_t word) { return static_cast<uint32_t>(word); }

__host__ __device__ __forceinline__ uint32_t word_value(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

}  // namespace deepep
