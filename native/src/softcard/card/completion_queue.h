// A completion queue. Completions are written to its ring in mlx5's format, or wait until ibv_poll_cq takes them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "work.h"

namespace card {

struct Completion {
    const Work* work;    // null for a receive
    uint64_t id;         // verbs
    uint32_t queue;
    ibv_wc_status status;
    uint32_t num_bytes;
    bool has_immediate;
    uint32_t immediate;
};

class CompletionQueue {
  public:
    // Made by verbs: polled through verbs, until somebody asks for its ring.
    CompletionQueue(uint32_t number, uint32_t num_entries);

    // In memory of the user. A collapsed queue has one entry that matters, each completion overwriting the last.
    CompletionQueue(uint32_t number, uint8_t* ring, uint32_t num_entries, bool collapsed);

    void push(const Completion& completion);
    int poll(int num_entries, ibv_wc* out);

    // From now on the user reads the ring itself.
    uint8_t* expose_ring();

    uint32_t number() const { return number_; }
    uint32_t num_entries() const { return num_entries_; }
    uint32_t* record() { return record_; }
    uint64_t pushed() const { return pushed_; }

  private:
    void write(const Completion& completion);

    const uint32_t number_;
    const uint32_t num_entries_;
    const bool collapsed_;
    uint8_t* ring_ = nullptr;
    std::vector<uint8_t> own_ring_;
    alignas(64) uint32_t record_[16] = {};  // the user tells how far it has read
    std::deque<ibv_wc> waiting_;
    uint64_t pushed_ = 0;
};

}  // namespace card
