// The kernels of nic_checks.cu as functions, to be called by one thread for each block. What the emulator's headers ask
// of a block is answered for a warp of one thread.
#include <sched.h>

#include "cuda_on_host.h"
#include "nic_checks.cu"

namespace deepep::emulator {

thread_local Self self;

// There may be more threads than processors.
void poll(const void*) { sched_yield(); }

const uint64_t* gather(uint32_t, uint64_t value, Collective) {
    static thread_local uint64_t values[32];
    values[0] = value;
    return values;
}

}  // namespace deepep::emulator

extern "C" void nic_script_on_host(const deepep::NicScript* p, unsigned block) {
    blockIdx.x = block;
    deepep::deepep_nic_script(*p);
}

extern "C" void nic_exchange_on_host(const deepep::NicExchange* p, unsigned block) {
    blockIdx.x = block;
    deepep::deepep_nic_exchange(*p);
}
