// The driver's copies, for memory of a GPU that the CPU cannot map. All of a GPU are on one stream of the card, so that
// they take place in the order in which they are asked for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace card::gpu {

// Whether the address is memory of a GPU. False where no driver is loaded in this process.
bool is_device(const void* address);

// The calling thread's CUDA context: that of the GPU whose memory it registers. Null where there is no driver.
void* current_context();

// Of memory of the context's GPU. False, and a line on standard error, if the driver refuses.
bool to_device(void* context, uint64_t to, const void* from, size_t num_bytes);
bool from_device(void* context, void* to, uint64_t from, size_t num_bytes);

// Waits until the copies to all GPUs are done, and from then on seen by them.
void settle();

}  // namespace card::gpu
