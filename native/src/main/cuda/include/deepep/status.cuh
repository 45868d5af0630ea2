// What a kernel tells the host: a StatusBlock in mapped host memory per prepared operation.
//
// The kernel writes `ready` once the counts are known and `done` as its last word; each holds epoch | code << 32.
// Everything else is written before the word that announces it. Of several launches that the host did not look at
// between, such as replays of a graph, `code` and the fields after it keep the first that failed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "deepep/memory.cuh"
#include "deepep/status_block.cuh"

namespace deepep {

struct Fault {
    uint32_t code = kOk;
    uint32_t phase = kPhaseNone;
    int32_t rank = 0;
    int32_t peer = -1;
    int32_t token = -1;
    int32_t k = -1;
    int64_t expected = 0;
    int64_t seen = 0;
};

// Tells the host, unless a fault of an earlier launch is still to be read. The thread that found the launch's first.
__device__ inline void report_fault(uint64_t block, const Fault& fault) {
    auto status = at<volatile StatusBlock>(block);
    if (status->code != kOk) return;
    status->phase = fault.phase;
    status->rank = fault.rank;
    status->peer = fault.peer;
    status->token = fault.token;
    status->k = fault.k;
    status->expected = fault.expected;
    status->seen = fault.seen;
    fence_sys();  // release; pairs with the host's acquire of `code`
    status->code = fault.code;
}

__host__ __device__ __forceinline__ uint64_t pack_word(uint32_t epoch, uint32_t value) {
    return static_cast<uint64_t>(value) << 32 | epoch;
}

__host__ __device__ __forceinline__ uint32_t word_epoch(uint64_t word) { return static_cast<uint32_t>(word); }

__host__ __device__ __forceinline__ uint32_t word_value(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

}  // namespace deepep
