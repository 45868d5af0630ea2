// Launches as the driver sees them: a grid's blocks run side by side, each on a thread of the system.
#pragma once

#include <cstdint>

#include "block.h"

namespace deepep::emulator {

struct Grid {
    const char* name;
    const Kernel* kernel;
    void* const* params;
    Dim grid, block;
    uint32_t shared_bytes;
    uint32_t seed;
    int gpu;
    bool early;  // may begin before the launch before has ended
    struct LaunchOrder* order = nullptr;  // with the detection of races

    uint32_t num_threads() const { return block.x * block.y * block.z; }
    uint32_t num_blocks() const { return grid.x * grid.y * grid.z; }
};

// The memory of fibers' stacks, used again by the blocks that a thread runs.
class Stacks {
  public:
    ~Stacks();
    uint8_t* of(uint32_t num_threads);

  private:
    uint8_t* memory_ = nullptr;
    size_t num_bytes_ = 0;
};

// False after a fault of device code, which is on standard error.
bool run_block(const Grid& grid, uint32_t number, Stacks& stacks);

// Runs all blocks; returns when they are done.
bool run_grid(const Grid& grid);

}  // namespace deepep::emulator
