// Low-latency dispatch that reaches ranks of other nodes through queues it writes itself: see lowlatency_dispatch.cu,
// and remote.cuh for what differs.
#include "deepep/network_ibgda.cuh"

#define DEEPEP_LOWLATENCY_INTERNODE
#define DEEPEP_LOWLATENCY_NETWORK Ibgda
#include "lowlatency_dispatch.cu"
