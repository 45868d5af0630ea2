// Low-latency dispatch for more ranks than a word has bits, through NVSHMEM: see lowlatency_dispatch.cu, and
// rank_set.cuh and remote.cuh for what differs.
#include "deepep/network_nvshmem.cuh"

#define DEEPEP_LOWLATENCY_WIDE
#define DEEPEP_LOWLATENCY_INTERNODE
#define DEEPEP_LOWLATENCY_NETWORK Nvshmem
#include "lowlatency_dispatch.cu"
