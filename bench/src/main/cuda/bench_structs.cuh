// Generated from io.deepep.bench.cuda.BenchStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

#include "deepep/network_structs.cuh"

namespace deepep::bench {

constexpr int kFlagStrideBytes = 128;
constexpr int kMaxWarps = 16;
constexpr int kStages = 2;

// See bench_gate.cu.
struct GateParams {
    uint64_t flags;                     // u64 [num_ranks]: every rank's, as this GPU sees them
    uint64_t epoch;                     // of this gate; grows by one with each
    uint64_t pause_ns;                  // between the barrier and the end
    uint64_t timeout_ns;
    int32_t rank;
    int32_t num_ranks;
};
static_assert(sizeof(GateParams) == 40);
static_assert(offsetof(GateParams, flags) == 0);
static_assert(offsetof(GateParams, epoch) == 8);
static_assert(offsetof(GateParams, pause_ns) == 16);
static_assert(offsetof(GateParams, timeout_ns) == 24);
static_assert(offsetof(GateParams, rank) == 32);
static_assert(offsetof(GateParams, num_ranks) == 36);

// See bench_empty.cu.
struct EmptyParams {
    uint64_t reserved[76];              // as many bytes as a low-latency kernel takes
};
static_assert(sizeof(EmptyParams) == 608);
static_assert(offsetof(EmptyParams, reserved) == 0);

// See bench_exchange.cu.
struct ExchangeParams {
    uint64_t memory;                    // u64 [num_ranks]: every rank's, as this GPU sees it
    uint64_t target_offset;             // of the target half
    int32_t rank;
    int32_t num_ranks;
    int32_t rows;                       // to or from each peer
    int32_t row_bytes;                  // a multiple of 16
    int32_t pull;                       // 1: rows are read from peers, 0: written to them
    int32_t reserved;
};
static_assert(sizeof(ExchangeParams) == 40);
static_assert(offsetof(ExchangeParams, memory) == 0);
static_assert(offsetof(ExchangeParams, target_offset) == 8);
static_assert(offsetof(ExchangeParams, rank) == 16);
static_assert(offsetof(ExchangeParams, num_ranks) == 20);
static_assert(offsetof(ExchangeParams, rows) == 24);
static_assert(offsetof(ExchangeParams, row_bytes) == 28);
static_assert(offsetof(ExchangeParams, pull) == 32);
static_assert(offsetof(ExchangeParams, reserved) == 36);

// See bench_put.cu, _latency and _sparse.
struct PutParams {
    Network network;
    Cells slots;
    Cells flags;
    uint64_t source;                    // what is put: a cell's slots
    uint64_t slot_bytes;                // a multiple of 16
    uint64_t row_bytes;                 // of a message, a multiple of 16
    uint64_t return_bytes;              // of an answer, a multiple of 16
    uint64_t epoch;                     // of the first signal; grows from launch to launch
    uint64_t timeout_ns;
    uint64_t num_timeouts;              // u64 of mapped host memory
    int32_t peer;
    int32_t num_rows;
};
static_assert(sizeof(PutParams) == 152);
static_assert(offsetof(PutParams, network) == 0);
static_assert(offsetof(PutParams, slots) == 56);
static_assert(offsetof(PutParams, flags) == 72);
static_assert(offsetof(PutParams, source) == 88);
static_assert(offsetof(PutParams, slot_bytes) == 96);
static_assert(offsetof(PutParams, row_bytes) == 104);
static_assert(offsetof(PutParams, return_bytes) == 112);
static_assert(offsetof(PutParams, epoch) == 120);
static_assert(offsetof(PutParams, timeout_ns) == 128);
static_assert(offsetof(PutParams, num_timeouts) == 136);
static_assert(offsetof(PutParams, peer) == 144);
static_assert(offsetof(PutParams, num_rows) == 148);

// Read when the binary is loaded: its structs have to be Java's.
extern "C" {
__device__ uint64_t deepep_bench_structs_hash = 0x85eb8629f7987d09;
}

}  // namespace deepep::bench
