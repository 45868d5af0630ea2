// Low-latency dispatch for ranks of several nodes whose heaps are all mapped on this GPU, as those of virtual nodes:
// see lowlatency_dispatch.cu, and remote.cuh for what differs.
#define DEEPEP_LOWLATENCY_INTERNODE
#include "lowlatency_dispatch.cu"
