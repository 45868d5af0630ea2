// Low-latency dispatch for more ranks than a word has bits, whose heaps are all mapped on this GPU: see
// lowlatency_dispatch.cu, and rank_set.cuh for what differs.
#define DEEPEP_LOWLATENCY_WIDE
#define DEEPEP_LOWLATENCY_INTERNODE
#include "lowlatency_dispatch.cu"
