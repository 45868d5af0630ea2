// What the normal kernels share besides their structs: the words they exchange and the modes they run in.
// Offsets are bytes from a rank's heap base.
#pragma once

#include "normal_structs.cuh"

namespace deepep::normal {

constexpr int kThreads = 512;  // layout, dispatch and expand
constexpr int kDispatchStages = 2;
constexpr int kMaxSlots = 64;

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
    kHandleEpoch = 7,   // cached dispatch and combine: the call whose routing is used
    kNumBlocks = 8,     // several nodes
    kNumSlots = 9,      // several nodes: of a ring
    kNumCompared = 10,  // the words before this one must agree on all ranks
    kStatus = 10,
    kStatusToken = 11,
    kStatusK = 12,
    kStatusValueLow = 13,
    kStatusValueHigh = 14,
    kRowLimit = 15,  // dispatch: rows this rank can take. combine: rows this rank offers
    kXLow = 16,      // combine: offset in the heap, or address where kXAbsolute is set
    kXHigh = 17,
    kXStride = 18,  // bytes
    kXAbsolute = 19,
    kWeightsLow = 20,
    kWeightsHigh = 21,
    kWeightsStride = 22,  // floats
    kWeightsAbsolute = 23,
    kNumTokens = 24,        // several nodes, where counts follow the words
    kExpandedLimited = 25,  // several nodes: this rank takes a limited number of expanded rows
    kHeaderCounts = 24,     // combine on one node: see offer_room
};
static_assert(kHeaderCounts + kMaxRanks <= kHeaderWords);

enum Op : int32_t { kOpDispatch = 1, kOpCachedDispatch = 2, kOpCombine = 3 };

// What a rank waits for, of each other rank.
enum WaitIdx : int { kWaitForHeader = 0, kWaitForEnd = 1 };
static_assert(kWaitForEnd < kWaitsPerRank);

enum ExpandMode : int32_t { kCopyRows = 0, kBuildMap = 1, kUseMap = 2 };

}  // namespace deepep::normal
