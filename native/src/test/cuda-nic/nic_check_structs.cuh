// Generated from io.deepep.cuda.ibgda.NicCheckStructs, which a test compares with this file: do not edit.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>

#include "deepep/network_structs.cuh"
#include "deepep/ibgda_structs.cuh"

namespace deepep {

constexpr int kNicPut = 1;
constexpr int kNicPutSignal = 2;
constexpr int kNicSignal = 3;
constexpr int kNicQuiet = 4;

// One call of the policy.
struct NicCommand {
    Cells cells;
    Cells flags;
    uint64_t offset;                    // of lane 0
    uint64_t stride;                    // from lane to lane
    uint64_t num_bytes;                 // of each lane
    uint64_t flag_offset;               // of lane 0; the next lane's is the next u64
    uint64_t value;                     // of lane 0; the next lane's is one more
    uint64_t num_lanes;
    int32_t kind;
    int32_t node;
};
static_assert(sizeof(NicCommand) == 88);
static_assert(offsetof(NicCommand, cells) == 0);
static_assert(offsetof(NicCommand, flags) == 16);
static_assert(offsetof(NicCommand, offset) == 32);
static_assert(offsetof(NicCommand, stride) == 40);
static_assert(offsetof(NicCommand, num_bytes) == 48);
static_assert(offsetof(NicCommand, flag_offset) == 56);
static_assert(offsetof(NicCommand, value) == 64);
static_assert(offsetof(NicCommand, num_lanes) == 72);
static_assert(offsetof(NicCommand, kind) == 80);
static_assert(offsetof(NicCommand, node) == 84);

// See deepep_nic_script.
struct NicScript {
    Network net;
    uint64_t commands;                  // NicCommand [num_commands]
    int32_t num_commands;
    int32_t padding;
};
static_assert(sizeof(NicScript) == 72);
static_assert(offsetof(NicScript, net) == 0);
static_assert(offsetof(NicScript, commands) == 56);
static_assert(offsetof(NicScript, num_commands) == 64);
static_assert(offsetof(NicScript, padding) == 68);

// See deepep_nic_exchange.
struct NicExchange {
    Network net;
    Cells slots;
    Cells flags;
    Cells acks;
    uint64_t errors;                    // u64
    uint64_t timeout_ns;
    uint64_t slot_bytes;
    uint64_t num_slots;                 // of a channel
    int32_t num_rounds;
    int32_t padding;
};
static_assert(sizeof(NicExchange) == 144);
static_assert(offsetof(NicExchange, net) == 0);
static_assert(offsetof(NicExchange, slots) == 56);
static_assert(offsetof(NicExchange, flags) == 72);
static_assert(offsetof(NicExchange, acks) == 88);
static_assert(offsetof(NicExchange, errors) == 104);
static_assert(offsetof(NicExchange, timeout_ns) == 112);
static_assert(offsetof(NicExchange, slot_bytes) == 120);
static_assert(offsetof(NicExchange, num_slots) == 128);
static_assert(offsetof(NicExchange, num_rounds) == 136);
static_assert(offsetof(NicExchange, padding) == 140);

// Read when the binary is loaded: its structs have to be Java's.
extern "C" {
__device__ uint64_t deepep_nic_check_structs = 0x8ebac3ba7d9e6a27;
}

}  // namespace deepep
