// The network between the PEs: a thread that carries what blocks have posted, each queue in its order and the queues in
// any order, and reads sources only then, as a network card does.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

namespace deepep::emulator {

// Memory at the same place of every PE's heap.
struct Symmetric {
    uint64_t own;
    size_t num_bytes;
    std::vector<uint64_t> of_pe;  // as mapped here
};

class Network {
  public:
    Network();

    void add(Symmetric memory);
    Symmetric remove(uint64_t own);  // empty if there is none
    std::vector<Symmetric> remove_all();

    // A PE's address for one of this PE; 0 if that is in no symmetric memory.
    uint64_t address(uint64_t own, int pe);

    void post(int block, int pe, void* target, const void* source, size_t num_bytes, uint64_t* signal, uint64_t value);
    void quiet();

  private:
    struct Put {
        uint64_t target, source;
        size_t num_bytes;
        uint64_t signal, value;
    };

    void carry();

    std::mutex mutex_;
    std::condition_variable posted_, arrived_;
    std::map<uint64_t, Symmetric> memory_;
    std::map<std::pair<int, int>, std::deque<Put>> queues_;  // by block and PE; none is empty
    size_t num_pending_ = 0;
    std::mt19937 random_;
};

}  // namespace deepep::emulator
