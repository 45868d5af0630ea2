// The kernels of nic_checks.cu as functions, to be called by one thread for each block.
#include "cuda_on_host.h"
#include "nic_checks.cu"

thread_local Index blockIdx;

extern "C" void nic_script_on_host(const deepep::NicScript* p, unsigned block) {
    blockIdx.x = block;
    deepep::deepep_nic_script(*p);
}

extern "C" void nic_exchange_on_host(const deepep::NicExchange* p, unsigned block) {
    blockIdx.x = block;
    deepep::deepep_nic_exchange(*p);
}
