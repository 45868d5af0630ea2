// Low-latency dispatch that reaches ranks of other nodes through NVSHMEM: see lowlatency_dispatch.cu, and remote.cuh
// for what differs.
#include "deepep/network_nvshmem.cuh"

#define DEEPEP_LOWLATENCY_INTERNODE
#define DEEPEP_LOWLATENCY_NETWORK Nvshmem
#include "lowlatency_dispatch.cu"
