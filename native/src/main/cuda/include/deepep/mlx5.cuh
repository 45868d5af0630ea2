// What an mlx5 network card reads and writes: entries of a send queue, doorbells, completions.
//
// The card takes words as big-endian. An entry is at most one block of 64 bytes here, of segments of 16:
//
//   byte         0 .. 3               4 .. 7              8 .. 11          12 .. 15
//   control      index << 8 | opcode  queue << 8 | size   flags            0           size in segments
//   address      remote address, 8 bytes                  remote key       0
//   write        bytes                local key           local address, 8 bytes
//   inline       bytes | 1 << 31      up to 12 bytes as they are
//   fetch-add    what to add, 8 bytes                     0                0           then where the old value goes,
//                                                                                      as in write
//
// A completion is 64 bytes, of which the last four matter: index of the entry (16 bits), a signature, opcode << 4 and
// flags; in an error, the syndrome is byte 55 and the vendor's byte 54.
#pragma once

#include <cstdint>

namespace deepep::mlx5 {

enum Opcode : uint32_t { kRdmaWrite = 0x08, kAtomicFetchAdd = 0x12 };

enum CompletionOpcode : uint32_t { kRequestDone = 0, kRequestError = 13, kResponseError = 14, kNoCompletion = 15 };

constexpr uint32_t kAskCompletion = 0x08;  // a flag of the control segment
constexpr uint32_t kInline = 1u << 31;

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

// Eight bytes, in this machine's order.
__host__ __device__ __forceinline__ Segment inline_data(uint64_t value) {
    return {{big_endian(kInline | 8), low(value), high(value), 0}};
}

__host__ __device__ __forceinline__ Segment fetch_add(uint64_t value) {
    return {{big_endian(high(value)), big_endian(low(value)), 0, 0}};
}

// The record holds 16 bits of the index behind the last entry.
__host__ __device__ __forceinline__ uint32_t record(uint64_t end) { return big_endian(low(end) & 0xffff); }

// The doorbell is the beginning of a control segment, without opcode and size.
__host__ __device__ __forceinline__ uint64_t doorbell(uint64_t end, uint32_t queue) {
    return static_cast<uint64_t>(big_endian(queue << 8)) << 32 | big_endian((low(end) & 0xffff) << 8);
}

// Of the last word of a completion, as loaded.
__host__ __device__ __forceinline__ uint32_t completion_opcode(uint32_t last_word) { return last_word >> 28; }

__host__ __device__ __forceinline__ uint16_t completion_index(uint32_t last_word) {
    return static_cast<uint16_t>((last_word & 0xff) << 8 | (last_word >> 8 & 0xff));
}

}  // namespace deepep::mlx5
