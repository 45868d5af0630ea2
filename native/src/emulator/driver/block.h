// What device code compiled for the host asks of the emulator: it runs inside one block, whose threads are fibers of
// one thread of the system. Nothing here is called from elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepep::emulator {

struct Dim {
    unsigned x, y, z;
};

// The running thread. `thread` changes with every switch, the rest belongs to the block.
struct Self {
    Dim thread, block, block_dim, grid_dim;
    uint8_t* dynamic_shared;
};
extern thread_local Self self;

// A kernel as its module exports it, under the name deepep_emulated_NAME.
struct Kernel {
    void (*run)(void* const* params);
    uint32_t num_params;
    const uint32_t* param_bytes;
};

// How far an operation's order reaches.
enum class Scope : int { kBlock, kGpu, kSystem };

// Stands around an atomic operation on a word: what it orders, for the detection of races. Nothing without that.
class Atomic {
  public:
    Atomic(const void* at, uint32_t num_bytes, bool loads, bool stores, int order, Scope scope);
    ~Atomic();

  private:
    const void* at_;
    const void* code_ = nullptr;
    const void* cell_ = nullptr;  // of device memory
    uint32_t num_bytes_;
    bool loads_, stores_;
    int order_;
    Scope scope_;
};

void fence(Scope scope);

// Between ordinary accesses and bulk copies, of shared memory alone or of all memory: for the detection of races.
void fence_proxy(bool shared_alone);

// Loads in its scope count for nothing, if it is meant.
class Speculation {
  public:
    explicit Speculation(bool is_meant);
    ~Speculation();
};

// Launches of a stream run one after the other here; what this one does before it asks, the one before may still do.
void await_previous_launch();

// Lets the block's other threads run; whatever waits for memory calls it between two looks at an address.
void poll(const void* address);

enum class Collective : int { kSync, kShuffle, kVote, kReduce, kMatch };

// Meets the warp's other threads of `mask`. The values that they brought, by lane, until this thread's next meeting.
const uint64_t* gather(uint32_t mask, uint64_t value, Collective kind);

// Meets num_threads of the block, 0 for all of them. The sum of what they brought.
uint32_t barrier(int id, uint32_t num_threads, uint32_t value = 0);

// Is counted there, but does not wait.
void barrier_arrive(int id, uint32_t num_threads);

// mbarriers and the bulk copies that complete on them. Copies happen late, in any order: at the latest when they are
// waited for.
void mbarrier_init(uint64_t* barrier, uint32_t num_arrivals);
void mbarrier_arrive(uint64_t* barrier, uint32_t expected_bytes);
bool mbarrier_try_wait(uint64_t* barrier, uint32_t parity);
void bulk_load(void* to, const void* from, uint32_t num_bytes, uint64_t* barrier);
void bulk_store(void* to, const void* from, uint32_t num_bytes);
void bulk_commit();
void bulk_wait(uint32_t num_pending, bool written);

}  // namespace deepep::emulator
