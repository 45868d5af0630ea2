// What the low-latency kernels share with the host, and what they alone know of it.
// Every offset and stride is computed by the host: the device only indexes. Offsets and strides are bytes, offsets
// from a rank's heap base.
#pragma once

#include "lowlatency_structs.cuh"

namespace deepep::lowlatency {

constexpr int kOrderBits = 15;  // a number below 1024 tokens * 32 selections
constexpr int kTokenBits = 16;
constexpr int kRowBits = 15;  // a number below 32 ranks * 1024 tokens
constexpr int kTopkBits = 5;
static_assert(kMaxLocalExperts <= 1 << (32 - kOrderBits) && kMaxLocalExperts <= 1 << (32 - kRowBits));

#ifdef DEEPEP_LOWLATENCY_INTERNODE
constexpr int kRanks = kMaxRanks;  // that this binary is built for
constexpr int kFlagWords = 2;      // of a part of a combined row: a network sets flags of 64 bits
#else
constexpr int kRanks = kMaxNvlRanks;
constexpr int kFlagWords = 1;
#endif

enum Phases : int32_t { kSend = 1, kReceive = 2 };

enum Kind : int { kDispatch = 0, kCombine = 1 };

enum Format : int32_t { kBf16 = 0, kFp8 = 1, kFp8PowerOfTwo = 2, kFp8Ue8m0 = 3 };
constexpr int32_t kWeighted = 4;  // added to the format in a header: rows have weights

// Words of a dispatch header, each stored as epoch | value << 32. After them the source's selections of each of the
// receiver's experts, filled up to an even number, then those of all experts.
enum DispatchHeaderWord : int {
    kStatus = 0,  // kOk or kExpertOutOfRange; then the words up to kValueHigh belong to it
    kStatusToken = 1,
    kStatusK = 2,
    kStatusValueLow = 3,
    kStatusValueHigh = 4,
    // kFormat = 5 and kTopk = 6 are Java's
    kNumRows = 7,        // rows that follow for the receiver
    kNumSelections = 8,  // of its experts in them
    kCrowded = 9,        // 1: the source has more selections of an expert, of any rank, than it may have tokens
};
static_assert(kFormat == 5 && kTopk == 6 && kCrowded < kHeaderCounts && kHeaderCounts % 2 == 0);

// Words of a combine header, likewise.
enum CombineHeaderWord : int {
    // kDispatchEpoch = 0, of the dispatch whose tokens come home, and kRowFormat = 1 are Java's
    kHasRows = 2,        // 0: the sender did not receive the owner's tokens in that dispatch
    kCombineStatus = 3,  // as kStatus, or kSelectionChanged
    kCombineToken = 4,
    kCombineK = 5,
    kCombineValueLow = 6,
    kCombineValueHigh = 7,
};
static_assert(kDispatchEpoch == 0 && kRowFormat == 1);
static_assert(kCombineValueHigh < kCombineHeaderWords && kCombineHeaderWords % 2 == 0);

}  // namespace deepep::lowlatency
