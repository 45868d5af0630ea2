// The kernels of `bench put` over NVSHMEM, in one binary.
#include "deepep/network_nvshmem.cuh"

#define DEEPEP_BENCH_NETWORK Nvshmem
#include "bench_put.cu"
#include "bench_put_latency.cu"
#include "bench_put_sparse.cu"
