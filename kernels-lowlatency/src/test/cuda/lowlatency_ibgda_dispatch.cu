// Low-latency dispatch that reaches ranks of other nodes through queues it writes itself, for the software network
// card.
#include "deepep/network_ibgda.cuh"

#define DEEPEP_LOWLATENCY_INTERNODE
#define DEEPEP_LOWLATENCY_NETWORK Ibgda
#include "../../main/cuda/lowlatency_dispatch.cu"
