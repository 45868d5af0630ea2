// What the low-latency kernels share with the host, and what they alone know of it.
// Every offset and stride is computed by the host: the device only indexes. Offsets and strides are bytes, offsets
// from a rank's heap base.
#pragma once

#ifdef DEEPEP_LOWLATENCY_WIDE
#include "lowlatency_wide_structs.cuh"
#else
#include "lowlatency_structs.cuh"
#endif

namespace deepep::lowlatency {

static_assert(kMaxTokens * kMaxTopk <= 1 << kOrderBits && kMaxRanks * kMaxTokens <= 1 << kRowBits);
static_assert(kMaxTokens <= 1 << kTokenBits && kMaxTopk <= 1 << kTopkBits);
static_assert(kMaxLocalExperts <= 1 << (32 - kOrderBits) && kMaxLocalExperts <= 1 << (32 - kRowBits));
static_assert(kHeaderCounts % 2 == 0 && kCombineHeaderWords % 2 == 0);  // stored in pairs

#ifdef DEEPEP_LOWLATENCY_INTERNODE
constexpr int kRanks = kMaxRanks;  // that this binary is built for
constexpr int kFlagWords = 2;      // of a part of a combined row: a network sets flags of 64 bits
#else
constexpr int kRanks = kMaxNvlRanks;
constexpr int kFlagWords = 1;
#endif

}  // namespace deepep::lowlatency
