// Generated from io.deepep.cuda.kernel.StatusStruct, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepep {

// See FaultCode.
enum Code : uint32_t {
    kOk = 0,
    kExpertOutOfRange = 1,    // rank; token, k, seen = the expert
    kHeaderMismatch = 2,      // rank; k = index of the header word, expected = that of peer, seen = that rank's
    kTooManyRows = 3,         // rank = receiver; expected = its limit, seen = rows
    kTimeout = 4,             // rank waited for peer in phase; expected, seen = flag words
    kPeerAborted = 5,         // seen = peer's code, k = the rank that it gave up on
    kOutOfStep = 6,           // peer is ahead: expected, seen = epochs
    kTooManyExpanded = 7,     // rank = receiver; expected = its limit, seen = rows
    kRowOutOfRange = 8,       // this rank only: peer offers `expected` rows, the handle names row `seen`
    kGridNotResident = 9,     // the blocks of one launch did not run together
    kLayoutMask = 10,         // rank; token, k = receiver, seen = what the layout says
    kLayoutRankCount = 11,    // rank; token = receiver, k = what the layout says, seen = what it is
    kLayoutExpertCount = 12,  // rank; token = expert, k = what the layout says, seen = what it is
    kHandleInvalid = 13,      // rank: the dispatch of its handle failed
    kOperationMismatch = 14,  // peer makes the other kind of call
    kSelectionChanged = 15,   // rank; token, k, seen = the expert that was not dispatched
    kPeerGone = 16,           // rank waited for peer in phase, for `seen` ns in all
    kHandleMasked = 17,       // rank: masks have changed since the dispatch of its handle
    kSelectedTooOften = 18,   // rank; k = the expert, seen = how often, expected = the limit
};

// See FaultPhase.
enum Phase : uint32_t {
    kPhaseNone = 0,
    kPhaseHeader = 1,
    kPhaseMeta = 2,
    kPhaseDone = 3,
    kPhaseGrid = 4,
    kPhaseRows = 5,
    kPhaseSlots = 6,
};

// See status.cuh.
struct StatusBlock {
    uint64_t ready;                     // epoch | code << 32 once the counts are known
    uint64_t done;                      // epoch | code << 32 as the last word
    int32_t num_rows;                   // rows this rank receives
    int32_t num_expanded_rows;          // sum of the aligned expert counts
    uint32_t code;                      // of the first fault since the host set it to 0; below: that fault
    uint32_t phase;
    int32_t rank;
    int32_t peer;
    int32_t token;
    int32_t k;
    int64_t expected;
    int64_t seen;
};
static_assert(sizeof(StatusBlock) == 64);
static_assert(offsetof(StatusBlock, ready) == 0);
static_assert(offsetof(StatusBlock, done) == 8);
static_assert(offsetof(StatusBlock, num_rows) == 16);
static_assert(offsetof(StatusBlock, num_expanded_rows) == 20);
static_assert(offsetof(StatusBlock, code) == 24);
static_assert(offsetof(StatusBlock, phase) == 28);
static_assert(offsetof(StatusBlock, rank) == 32);
static_assert(offsetof(StatusBlock, peer) == 36);
static_assert(offsetof(StatusBlock, token) == 40);
static_assert(offsetof(StatusBlock, k) == 44);
static_assert(offsetof(StatusBlock, expected) == 48);
static_assert(offsetof(StatusBlock, seen) == 56);

}  // namespace deepep
