#pragma once

#include <atomic>

#include "state.h"

// Work that goes into a graph. Its order of submission respects every dependency, so the graph keeps that order alone.
struct Capture {
    Stream* origin;
    std::vector<Stream*> streams;  // all that take part
    std::vector<deepep::emulator::Work> nodes;
    uint64_t id;
    bool valid = true, ended = false;
};

struct GreenContext;

struct Stream {
    Context* context;
    GreenContext* green = nullptr;  // the part of the GPU that it belongs to
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<deepep::emulator::Work> queue;
    uint64_t num_enqueued = 0, num_done = 0;
    bool started = false, destroyed = false;
    std::shared_ptr<Capture> capture;
    deepep::emulator::StreamOrder order;
    bool unjoined = false;  // has captured work that the origin does not wait for yet

    void run();
    void wait();
    bool is_idle();
};

// What work that records an event or waits for it needs of it.
struct EventState {
    std::atomic<uint64_t> recorded, done;  // records so far
    std::atomic<int64_t> time_ns;          // of the last one done
    deepep::emulator::Clock clock;                           // of all done
};

struct Event {
    EventState* state;
    std::shared_ptr<Capture> captured;  // that the last record belongs to
    Stream* captured_stream = nullptr;
};
