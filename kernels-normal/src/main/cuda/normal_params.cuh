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
    kHandleEpoch = 7,  // cached dispatch and combine: the call whose routing is used
    kNumCompared = 8,  // the words before this one must agree on all ranks
    kStatus = 8,
    kStatusToken = 9,
    kStatusK = 10,
    kStatusValueLow = 11,
    kStatusValueHigh = 12,
    kRowLimit = 13,  // dispatch: rows this rank can take. combine: rows this rank offers
    kXLow = 14,      // combine: offset in the heap, or address where kXAbsolute is set
    kXHigh = 15,
    kXStride = 16,  // bytes
    kXAbsolute = 17,
    kWeightsLow = 18,
    kWeightsHigh = 19,
    kWeightsStride = 20,  // floats
    kWeightsAbsolute = 21,
    kHeaderCounts = 24,
};
static_assert(kHeaderCounts + kMaxRanks <= kHeaderWords);

enum Op : int32_t { kOpDispatch = 1, kOpCachedDispatch = 2, kOpCombine = 3 };


enum ExpandMode : int32_t { kCopyRows = 0, kBuildMap = 1, kUseMap = 2 };

}  // namespace deepep::normal
