// NVSHMEM's device functions as far as this project's device code calls them. What a block sends to a PE arrives in
// order, as through a queue of a reliable connection; all else in any order, and late.
#pragma once

#include "calls.h"

enum { NVSHMEM_SIGNAL_SET, NVSHMEM_SIGNAL_ADD };

extern "C" {
__attribute__((used)) deepep::emulator::NvshmemCalls nvshmemi_device_state_d;
}

// Queues keep their order.
inline void nvshmem_fence() { __threadfence_system(); }

inline void nvshmem_quiet() { nvshmemi_device_state_d.quiet(); }
