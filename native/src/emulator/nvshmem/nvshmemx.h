// See nvshmem.h.
#pragma once

#include "nvshmem.h"

void nvshmemx_putmem_nbi_warp(void* target, const void* source, size_t num_bytes, int pe);
void nvshmemx_putmem_signal_nbi_warp(void* target, const void* source, size_t num_bytes, uint64_t* signal,
                                     uint64_t value, int operation, int pe);
void nvshmemx_signal_op(uint64_t* signal, uint64_t value, int operation, int pe);
