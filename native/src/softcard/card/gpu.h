// The driver's copies, for memory of a GPU that the CPU cannot map. All on one stream of the card, so that copies
// take place in the order in which they are asked for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace card::gpu {

// Whether the address is memory of a GPU. False where no driver is loaded in this process.
bool is_device(const void* address);

// Remembers the calling thread's CUDA context for the card's copies.
void adopt_context();

void to_device(uint64_t to, const void* from, size_t num_bytes);
void from_device(void* to, uint64_t from, size_t num_bytes);

// Waits until the copies to the GPU are done, and from then on seen by it.
void settle();

}  // namespace card::gpu
