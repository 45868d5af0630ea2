// Stands in for the header of the same name.
#pragma once

#include "cuda_on_host.h"

namespace deepep {

inline void team_barrier(int id, int num_threads) { emulator::barrier(id, num_threads); }

inline uint8_t* dynamic_shared() { return emulator::self.dynamic_shared; }

}  // namespace deepep
