// Low-latency dispatch for more ranks than a word has bits, through queues it writes itself: see
// lowlatency_dispatch.cu, and rank_set.cuh and remote.cuh for what differs.
#include "deepep/network_ibgda.cuh"

#define DEEPEP_LOWLATENCY_WIDE
#define DEEPEP_LOWLATENCY_INTERNODE
#define DEEPEP_LOWLATENCY_NETWORK Ibgda
#include "lowlatency_dispatch.cu"
