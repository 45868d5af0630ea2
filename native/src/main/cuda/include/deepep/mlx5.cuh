// What an mlx5 network card reads and writes: entries of a send queue, doorbells, completions.
//
// The card takes words as big-endian. An entry has segments of 16 bytes, in one block of 64 or two:
//
//   byte         0 .. 3               4 .. 7              8 .. 11          12 .. 15
//   control      modifier << 24 |     queue << 8 | size   flags            0           size in segments
//                index << 8 | opcode
//   address      remote address, 8 bytes                  remote key       0
//   data         bytes                local key           local address, 8 bytes
//
// A write has these three. A swap under masks exchanges 8 bytes, and has two segments before the data, which say where
// the old value goes:
//
//   swap         what to store, 8 bytes                   what to compare, 8 bytes
//   masks        which bits to store, 8 bytes             which to compare, 8 bytes
//
// The last 8 bytes of a completion matter: opcode of the entry << 24 | queue, index of its first block (16 bits), a
// signature, opcode << 4 and flags; in an error, the syndrome is byte 55 and the vendor's byte 54.
#pragma once

#include <cstdint>

namespace deepep::mlx5 {

enum Opcode : uint32_t { kRdmaWrite = 0x08, kMaskedSwap = 0x09 << 24 | 0x14 };  // of 8 bytes

enum CompletionOpcode : uint32_t { kRequestDone = 0, kRequestError = 13, kResponseError = 14, kNoCompletion = 15 };

constexpr uint32_t kAskCompletion = 0x08;  // a flag of the control segment
constexpr int kWriteBlocks = 1, kSwapBlocks = 2;
constexpr int kWriteSegments = 3, kSwapSegments = 5;

struct alignas(16) Segment {
    uint32_t word[4];
};

__host__ __device__ __forceinline__ uint32_t big_endian(uint32_t v) {
#ifdef __CUDA_ARCH__
    return __byte_perm(v, 0, 0x0123);
#else
    return __builtin_bswap32(v);
#endif
}

__host__ __device__ __forceinline__ uint32_t high(uint64_t v) { return static_cast<uint32_t>(v >> 32); }

__host__ __device__ __forceinline__ uint32_t low(uint64_t v) { return static_cast<uint32_t>(v); }

__host__ __device__ __forceinline__ Segment control(Opcode opcode, uint64_t index, uint32_t queue, int num_segments,
                                                    bool ask_completion) {
    return {{big_endian((low(index) & 0xffff) << 8 | opcode), big_endian(queue << 8 | num_segments),
             big_endian(ask_completion ? kAskCompletion : 0), 0}};
}

__host__ __device__ __forceinline__ Segment address(uint64_t remote, uint32_t remote_key) {
    return {{big_endian(high(remote)), big_endian(low(remote)), big_endian(remote_key), 0}};
}

// num_bytes: 1 to 2^31 - 1.
__host__ __device__ __forceinline__ Segment data(uint64_t local, uint32_t local_key, uint32_t num_bytes) {
    return {{big_endian(num_bytes), big_endian(local_key), big_endian(high(local)), big_endian(low(local))}};
}

// Stores all bits, whatever is there.
__host__ __device__ __forceinline__ Segment swap(uint64_t value) {
    return {{big_endian(high(value)), big_endian(low(value)), 0, 0}};
}

__host__ __device__ __forceinline__ Segment all_bits() { return {{~0u, ~0u, 0, 0}}; }

// The record holds 16 bits of the index behind the last entry.
__host__ __device__ __forceinline__ uint32_t record(uint64_t end) { return big_endian(low(end) & 0xffff); }

// The doorbell is the beginning of a control segment, without opcode and size.
__host__ __device__ __forceinline__ uint64_t doorbell(uint64_t end, uint32_t queue) {
    return static_cast<uint64_t>(big_endian(queue << 8)) << 32 | big_endian((low(end) & 0xffff) << 8);
}

// Of the last 8 bytes of a completion, as loaded.
__host__ __device__ __forceinline__ uint32_t completion_opcode(uint64_t word) {
    return static_cast<uint32_t>(word >> 60);
}

__host__ __device__ __forceinline__ uint16_t completion_index(uint64_t word) {
    return static_cast<uint16_t>((word >> 32 & 0xff) << 8 | (word >> 40 & 0xff));
}

// Index behind the entry.
__host__ __device__ __forceinline__ uint16_t completion_end(uint64_t word) {
    bool swapped = (word & 0xff) == (kMaskedSwap & 0xff);
    return static_cast<uint16_t>(completion_index(word) + (swapped ? kSwapBlocks : kWriteBlocks));
}

}  // namespace deepep::mlx5
