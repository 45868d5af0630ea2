// Generated from io.deepep.bench.cuda.SoakStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepep::bench {

constexpr int kSoakThreads = 256;
constexpr int kNoScales = 0;
constexpr int kFloatScales = 1;
constexpr int kPackedScales = 2;

// See bench_soak.cu.
struct SoakParams {
    uint64_t seed;                      // of the exchange
    uint64_t exchange;                  // its number
    uint64_t errors;                    // u64 [8]: complaints, then the first: exchange, what, where
    uint64_t x;                         // bf16 [max_tokens][hidden]
    uint64_t topk_idx;                  // i64 [max_tokens][topk]
    uint64_t topk_weights;              // f32 [max_tokens][topk]
    uint64_t recv_x;                    // [local experts][num_ranks * max_tokens][hidden]
    uint64_t recv_scales;               // [local experts][columns][num_ranks * max_tokens]
    uint64_t counts;                    // i32 [local experts]
    uint64_t src_info;                  // i32 [local experts][num_ranks * max_tokens]
    uint64_t layout_range;              // i64 [local experts][num_ranks]
    uint64_t outputs;                   // bf16 [local experts][num_ranks * max_tokens][hidden]
    uint64_t combined;                  // bf16 [num_tokens][hidden]
    int32_t num_tokens[32];             // of every rank; -1: it is masked
    int32_t step;                       // Step
    int32_t format;                     // kNoScales, kFloatScales or kPackedScales
    int32_t rank;
    int32_t num_ranks;
    int32_t max_tokens;
    int32_t hidden;
    int32_t topk;
    int32_t num_experts;
};
static_assert(sizeof(SoakParams) == 264);
static_assert(offsetof(SoakParams, seed) == 0);
static_assert(offsetof(SoakParams, exchange) == 8);
static_assert(offsetof(SoakParams, errors) == 16);
static_assert(offsetof(SoakParams, x) == 24);
static_assert(offsetof(SoakParams, topk_idx) == 32);
static_assert(offsetof(SoakParams, topk_weights) == 40);
static_assert(offsetof(SoakParams, recv_x) == 48);
static_assert(offsetof(SoakParams, recv_scales) == 56);
static_assert(offsetof(SoakParams, counts) == 64);
static_assert(offsetof(SoakParams, src_info) == 72);
static_assert(offsetof(SoakParams, layout_range) == 80);
static_assert(offsetof(SoakParams, outputs) == 88);
static_assert(offsetof(SoakParams, combined) == 96);
static_assert(offsetof(SoakParams, num_tokens) == 104);
static_assert(offsetof(SoakParams, step) == 232);
static_assert(offsetof(SoakParams, format) == 236);
static_assert(offsetof(SoakParams, rank) == 240);
static_assert(offsetof(SoakParams, num_ranks) == 244);
static_assert(offsetof(SoakParams, max_tokens) == 248);
static_assert(offsetof(SoakParams, hidden) == 252);
static_assert(offsetof(SoakParams, topk) == 256);
static_assert(offsetof(SoakParams, num_experts) == 260);

// Read when the binary is loaded: its structs have to be Java's.
extern "C" {
__device__ uint64_t deepep_soak_structs_hash = 0x50df43351306a4a9;
}

}  // namespace deepep::bench
