// Generated from io.deepep.bench.cuda.BenchStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepep::bench {

constexpr int kFlagStrideBytes = 128;
constexpr int kMaxWarps = 16;
constexpr int kStages = 2;

// See bench_gate.cu.
struct GateParams {
    uint64_t flags[8];                  // every rank's, as this GPU sees them
    uint64_t epoch;                     // of this gate; grows by one with each
    uint64_t pause_ns;                  // between the barrier and the end
    uint64_t timeout_ns;
    int32_t rank;
    int32_t num_ranks;
};
static_assert(sizeof(GateParams) == 96);
static_assert(offsetof(GateParams, flags) == 0);
static_assert(offsetof(GateParams, epoch) == 64);
static_assert(offsetof(GateParams, pause_ns) == 72);
static_assert(offsetof(GateParams, timeout_ns) == 80);
static_assert(offsetof(GateParams, rank) == 88);
static_assert(offsetof(GateParams, num_ranks) == 92);

// See bench_exchange.cu.
struct ExchangeParams {
    uint64_t memory[8];                 // every rank's, as this GPU sees it
    uint64_t target_offset;             // of the target half
    int32_t rank;
    int32_t num_ranks;
    int32_t rows;                       // to or from each peer
    int32_t row_bytes;                  // a multiple of 16
    int32_t pull;                       // 1: rows are read from peers, 0: written to them
    int32_t reserved;
};
static_assert(sizeof(ExchangeParams) == 96);
static_assert(offsetof(ExchangeParams, memory) == 0);
static_assert(offsetof(ExchangeParams, target_offset) == 64);
static_assert(offsetof(ExchangeParams, rank) == 72);
static_assert(offsetof(ExchangeParams, num_ranks) == 76);
static_assert(offsetof(ExchangeParams, rows) == 80);
static_assert(offsetof(ExchangeParams, row_bytes) == 84);
static_assert(offsetof(ExchangeParams, pull) == 88);
static_assert(offsetof(ExchangeParams, reserved) == 92);

// Read when the binary is loaded: its structs have to be Java's.
extern "C" {
__device__ uint64_t deepep_bench_structs_hash = 0x6084549fd35967f1;
}

}  // namespace deepep::bench
