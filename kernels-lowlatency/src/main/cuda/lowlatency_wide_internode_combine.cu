// Low-latency combine for more ranks than a word has bits, whose heaps are all mapped on this GPU: see
// lowlatency_combine.cu, and rank_set.cuh for what differs.
#define DEEPEP_LOWLATENCY_WIDE
#define DEEPEP_LOWLATENCY_INTERNODE
#include "lowlatency_combine.cu"
