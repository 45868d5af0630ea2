// What the normal kernels share with Java: structs, the words they exchange, the modes they run in.
// Offsets are bytes from a rank's heap base.
//
// Words of a header are stored as epoch | word << 32. On one node counts per rank follow at kFirstCount, then the
// counts of the receiver's experts. Where ranks have a lane each, the words are one warp wide with the counts; larger
// nodes have kernels of their own, built with DEEPEP_NORMAL_WIDE, in which warps take ranks in rounds.
#pragma once

#ifdef DEEPEP_NORMAL_WIDE
#include "normal_wide_structs.cuh"
#else
#include "normal_structs.cuh"
#endif

namespace deepep::normal {

constexpr bool kIsWide = kMaxRanks > 32;
constexpr int kRounds = (kMaxRanks + 31) / 32;  // a warp takes the ranks in: lane i of round r has rank 32 * r + i
constexpr int kFirstCount = kIsWide ? kHeaderWords : kHeaderCounts;
constexpr int kOwnWords = kIsWide ? kHeaderWords + kMaxRanks : kHeaderWords;  // of a header, but for counts of experts

static_assert(kIsWide || kHeaderCounts + kMaxRanks <= kHeaderWords);
static_assert(kWaitForEnd < kWaitsPerRank);

}  // namespace deepep::normal
