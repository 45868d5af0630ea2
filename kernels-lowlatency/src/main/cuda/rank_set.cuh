// Sets of ranks: bit by rank. A word where a binary's groups have at most 32 ranks: then a rank is also a lane of a
// warp. In larger groups several words, and a warp takes the ranks in rounds, one for each word: lane i of round w has
// rank 32 * w + i.
#pragma once

#include <type_traits>

#include "lowlatency_params.cuh"

namespace deepep::lowlatency {

constexpr int kRankWords = (kRanks + 31) / 32;
constexpr bool kIsWide = kRankWords > 1;

struct WideSet {
    uint32_t word[kRankWords];
};

using RankSet = std::conditional_t<kIsWide, WideSet, uint32_t>;
using RankSetIn = std::conditional_t<kIsWide, const WideSet&, uint32_t>;  // as an argument

// The word that a rank's bit is in, and which bit that is.
__device__ __forceinline__ constexpr int word_of(int rank) { return kIsWide ? rank / 32 : 0; }
__device__ __forceinline__ constexpr int bit_of(int rank) { return kIsWide ? rank % 32 : rank; }

// The lane's rank of a round.
__device__ __forceinline__ int rank_of_lane(int word) {
    int lane = threadIdx.x % 32;
    return kIsWide ? word * 32 + lane : lane;
}

__device__ __forceinline__ uint32_t& word_at(uint32_t& set, int) { return set; }
__device__ __forceinline__ uint32_t word_at(const uint32_t& set, int) { return set; }
__device__ __forceinline__ uint32_t& word_at(WideSet& set, int word) { return set.word[word]; }
__device__ __forceinline__ uint32_t word_at(const WideSet& set, int word) { return set.word[word]; }

// Bit 0: whether the rank is in the set, as of a word.
__device__ __forceinline__ uint32_t operator>>(const WideSet& set, int rank) {
    return set.word[rank / 32] >> rank % 32;
}

// For each word, without a loop where there is one. Large sets stay in memory: there are no registers to keep them in.
template <typename Body>
__device__ __forceinline__ void for_words(Body body) {
    if constexpr (!kIsWide) {
        body(0);
    } else {
#pragma unroll 1
        for (int w = 0; w < kRankWords; ++w) body(w);
    }
}

// The first so many ranks, at least one.
__device__ __forceinline__ RankSet ranks_below(int num_ranks) {
    RankSet set;
    for_words([&](int w) {
        int left = num_ranks - w * 32;
        word_at(set, w) = kIsWide && left <= 0 ? 0 : ~0u >> (32 - (kIsWide ? min(left, 32) : num_ranks));
    });
    return set;
}

__device__ __forceinline__ WideSet operator&(const WideSet& a, const WideSet& b) {
    WideSet both;
#pragma unroll 1
    for (int w = 0; w < kRankWords; ++w) both.word[w] = a.word[w] & b.word[w];
    return both;
}

__device__ __forceinline__ WideSet operator~(const WideSet& a) {
    WideSet others;
#pragma unroll 1
    for (int w = 0; w < kRankWords; ++w) others.word[w] = ~a.word[w];
    return others;
}

// Sets in memory are arrays of words.

template <typename Words>
__device__ __forceinline__ RankSet load_set(Words& words) {
    RankSet set;
    for_words([&](int w) { word_at(set, w) = words[w]; });
    return set;
}

__device__ __forceinline__ void store_set(uint32_t* words, RankSetIn set) {
    for_words([&](int w) { words[w] = word_at(set, w); });
}

// Others may add and read at the same time.
__device__ __forceinline__ void add_rank(uint32_t* words, int rank) {
    atomicOr(&words[word_of(rank)], 1u << bit_of(rank));
}
__device__ __forceinline__ void add_rank(uint32_t& set, int rank) { atomicOr(&set, 1u << rank); }
__device__ __forceinline__ void add_rank(WideSet& set, int rank) { add_rank(set.word, rank); }

}  // namespace deepep::lowlatency
