// The commands of mlx5's DevX that the transports give: where their fields are, in bits from the command's beginning.
// The numbers are those of the public Programmer's Reference Manual.
#pragma once

#include <cstdint>

namespace card::devx {

struct Field {
    uint32_t bit;
    uint32_t num_bits;

    constexpr Field in(uint32_t outer) const { return {bit + outer, num_bits}; }
};

// Fields are big-endian: bit 0 is the highest of the first byte.
inline uint64_t get(const void* command, Field field) {
    const auto* bytes = static_cast<const uint8_t*>(command);
    uint64_t value = 0;
    for (uint32_t bit = field.bit; bit < field.bit + field.num_bits; bit++) {
        value = value << 1 | ((bytes[bit / 8] >> (7 - bit % 8)) & 1);
    }
    return value;
}

inline void set(void* command, Field field, uint64_t value) {
    auto* bytes = static_cast<uint8_t*>(command);
    for (uint32_t i = 0; i < field.num_bits; i++) {
        uint32_t bit = field.bit + field.num_bits - 1 - i;
        auto mask = static_cast<uint8_t>(1 << (7 - bit % 8));
        bytes[bit / 8] = static_cast<uint8_t>((value >> i) & 1 ? bytes[bit / 8] | mask : bytes[bit / 8] & ~mask);
    }
}

enum Opcode : uint16_t {
    kQueryCapabilities = 0x100,
    kCreateCompletionQueue = 0x400,
    kCreateQueuePair = 0x500,
    kResetToInit = 0x502,
    kInitToReceive = 0x503,
    kReceiveToSend = 0x504,
    kToReset = 0x50a,
};

constexpr Field kOpcode{0x00, 16}, kModifier{0x30, 16};
constexpr Field kNumberIn{0x48, 24}, kNumberOut{0x48, 24};
constexpr Field kStatus{0x00, 8}, kSyndrome{0x20, 32};
constexpr uint8_t kBadParameter = 0x03, kBadState = 0x10;

// Completion queue context, inside its creation.
constexpr uint32_t kQueueContext = 0x80;
constexpr Field kCollapsed = Field{0x0b, 1}.in(kQueueContext), kLogCompletions = Field{0x63, 5}.in(kQueueContext);
constexpr Field kRingMemory{0x2c0, 32}, kRingOffset{0x280, 64};

// Queue pair context, inside its creation and its changes.
constexpr uint32_t kPairContext = 0xc0;
constexpr Field kEntriesMemory{0x840, 32}, kEntriesOffset{0x800, 64};
constexpr Field kTransport = Field{0x08, 8}.in(kPairContext), kDomain = Field{0x28, 24}.in(kPairContext);
constexpr Field kSendCompletions = Field{0x3e8, 24}.in(kPairContext);
constexpr Field kReceiveCompletions = Field{0x4e8, 24}.in(kPairContext);
constexpr Field kReceiveQueue = Field{0x568, 24}.in(kPairContext), kLogEntries = Field{0x51, 4}.in(kPairContext);
constexpr Field kRecordMemory = Field{0x720, 32}.in(kPairContext), kRecordOffset = Field{0x500, 64}.in(kPairContext);
constexpr Field kTimeStamps = Field{0x58, 2}.in(kPairContext);
constexpr uint64_t kFreeRunning = 0;
constexpr Field kPort = Field{0x1e8, 8}.in(kPairContext);
constexpr Field kPeer = Field{0xa8, 24}.in(kPairContext);
constexpr Field kReadAccess = Field{0x490, 1}.in(kPairContext), kWriteAccess = Field{0x491, 1}.in(kPairContext);
constexpr Field kAtomicAccess = Field{0x492, 1}.in(kPairContext), kPathLid = Field{0xf0, 16}.in(kPairContext);
constexpr Field kGlobalHeader = Field{0xe8, 1}.in(kPairContext);
constexpr Field kGidHigh = Field{0x140, 64}.in(kPairContext), kGidLow = Field{0x180, 64}.in(kPairContext);
constexpr uint64_t kConnectedTransport = 0x0, kDynamicInitiatorTransport = 0x5;

// Capabilities, inside the answer of their query.
constexpr uint32_t kCapabilities = 0x80;
constexpr uint64_t kGeneral = 0, kAtomics = 3;
constexpr Field kLogDoorbellBytes = Field{0x26b, 5}.in(kCapabilities);
constexpr Field kRelaxedOrderingWrite = Field{0xe8, 1}.in(kCapabilities);
constexpr Field kCompletionVersion = Field{0x1fc, 4}.in(kCapabilities);
constexpr Field kHostOrder = Field{0x40, 2}.in(kCapabilities), kHostOrderSupported = Field{0x46, 1}.in(kCapabilities);
constexpr Field kAtomicOperations = Field{0x90, 16}.in(kCapabilities);
constexpr Field kAtomicSizes = Field{0xb0, 16}.in(kCapabilities), kAtomicSizesDc = Field{0xd0, 16}.in(kCapabilities);
constexpr uint64_t kAllAtomics = 0xf, kFourAndEightBytes = 0xc;

}  // namespace card::devx
