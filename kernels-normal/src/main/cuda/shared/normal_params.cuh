// What the normal kernels share with Java: structs, the words they exchange, the modes they run in.
// Offsets are bytes from a rank's heap base.
//
// Words of a header are stored as epoch | word << 32. On one node counts per rank follow at kHeaderCounts, one warp
// wide in all, then the counts of the receiver's experts.
#pragma once

#include "normal_structs.cuh"

namespace deepep::normal {

static_assert(kHeaderCounts + kMaxRanks <= kHeaderWords);
static_assert(kWaitForEnd < kWaitsPerRank);

}  // namespace deepep::normal
