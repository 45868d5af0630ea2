// What device code of this project calls of NVSHMEM, declared and nothing more: build_kernels.sh sees with it whether
// kernels over NVSHMEM compile, on machines that have no NVSHMEM.
#pragma once

#include <cstddef>
#include <cstdint>

enum { NVSHMEM_SIGNAL_SET, NVSHMEM_SIGNAL_ADD };

void nvshmem_fence();
void nvshmem_quiet();
