// Finds accesses to device memory that nothing orders, with vector clocks. An actor is a warp, or what a warp's bulk
// loads or bulk stores do on their own. It sees device code that was compiled to tell of its accesses (see
// build_kernels.sh), and orders them by what CUDA promises, not by what this processor does:
//
// - the launches of a stream, and from await_previous_launch on also those that begin early; events; what the host has
//   waited for;
// - barriers of a block, and mbarriers with the bulk loads that complete on them;
// - releases, and acquires that see them, as far as the scopes of both reach; fences with the relaxed accesses beside;
// - a fence between the proxies, where a bulk copy comes after an ordinary access, unless that was of a launch that has
//   ended. The warp that accessed or one of the block that copies makes it. One for shared memory counts there alone.
//
// What a warp has read, and used, no later write can change. So also a relaxed word for all of the system tells whoever
// sees it that what its warp and the launches before have read may be overwritten.
//
// Lanes of a warp count as ordered, and so do all host threads. Of shared memory, only the dynamic part is watched.
// Memory of the host is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace deepep::emulator {

// How far each actor had come.
struct Clock {
    std::vector<uint32_t> at;

    bool join(const Clock& other);
    void raise(uint32_t actor, uint32_t epoch);
    bool covers(uint32_t actor, uint32_t epoch) const { return actor < at.size() && at[actor] >= epoch; }
};
using SharedClock = std::shared_ptr<const Clock>;

// What a release tells: `clock`, and how far its actor had come by itself.
struct Release {
    SharedClock clock;
    uint32_t actor = 0, epoch = 0;

    explicit operator bool() const { return clock != nullptr; }
    void join_into(Clock& other) const;
};

// A stream's work so far: all of it, and what is over when a launch begins that need not wait for the one before.
struct StreamOrder {
    Clock done, before_last;
};

// What orders a launch.
struct LaunchOrder {
    SharedClock start;
    SharedClock previous;  // with the launch before
    Clock end;
};

// One actor's way.
struct Line {
    uint32_t actor = 0, epoch = 0;

    bool operator==(const Line& other) const { return actor == other.actor && epoch == other.epoch; }
};

struct WarpActor {
    Line line;
    Line loads, stores, stage_reads;  // of bulk copies, of which actor 0 is none; stores end reading before writing
    int gpu;
    Clock clock;
    SharedClock copy;         // of the clock, as long as nothing was acquired since
    SharedClock acquired[4];  // last ones, which are not joined again
    uint32_t next_acquired = 0;
    SharedClock arrived;  // with the meeting `meeting`, so that other lanes need not bring it
    uint64_t meeting = 0;
    // By scope: what a fence made ready for relaxed stores, what relaxed loads saw before a fence.
    Release released[3];
    Clock seen[3];
    std::vector<Release> proxy_fences[2];  // for shared memory, for all memory

    Release release();
    void fence_proxy(bool shared_alone);
    void acquire(const SharedClock& other);
    void acquire(const Release& other);
    void acquire(uint32_t actor, uint32_t epoch);
};

struct Cell;

// The actors of one block.
class BlockRaces {
  public:
    BlockRaces(uint32_t num_warps, int gpu, const LaunchOrder& order, uint8_t* shared, uint32_t shared_bytes);
    ~BlockRaces();

    WarpActor& warp(uint32_t number) { return *warps_[number]; }
    void arrive(int barrier, WarpActor& actor);
    void complete(int barrier);
    void leave(int barrier, WarpActor& actor);
    void arrive(const uint64_t* mbarrier, WarpActor& actor);
    void arrive(const uint64_t* mbarrier, const Line& copies, uint32_t epoch);
    void complete(const uint64_t* mbarrier);
    void leave(const uint64_t* mbarrier, WarpActor& actor);
    void await_previous_launch(WarpActor& actor);
    Release& word(const void* shared) { return words_[shared]; }
    const SharedClock& ended() const { return ended_; }
    void learn(const SharedClock& ended, const Release& read);
    bool knows_ended(uint32_t actor, uint32_t epoch) const { return others_ended_.of.covers(actor, epoch); }
    bool knows_read(uint32_t actor, uint32_t epoch) const {
        return knows_ended(actor, epoch) || others_read_.of.covers(actor, epoch);
    }
    bool has_shared(uint64_t address) const { return address - shared_ < shared_bytes_; }
    Cell* shared_cell(uint64_t address) const;
    bool is_proxy_fenced(const Line& access, const Clock& clock, const Line& own, bool is_shared) const;
    void end(Clock& all);

  private:
    struct Learned {
        Clock of;
        SharedClock last[16];  // which are not joined again
        uint32_t next = 0;

        void join(const SharedClock& other);
    };
    struct Meeting {
        uint64_t number = 0;
        Clock arrived;
        SharedClock complete;
    };
    std::vector<std::unique_ptr<WarpActor>> warps_;
    std::map<int, Meeting> barriers_;
    std::map<const uint64_t*, Meeting> mbarriers_;
    std::map<const void*, Release> words_;  // of shared memory
    const LaunchOrder& order_;
    uint64_t shared_;
    uint32_t shared_bytes_;
    std::unique_ptr<Cell[]> shared_cells_;
    SharedClock ended_;                 // what has ended, as far as this block has waited for it
    Learned others_ended_, others_read_;  // what it has been told
};

namespace races {

extern bool on;                          // device code that tells of its accesses is loaded
extern thread_local WarpActor* current;  // null outside of device code
extern thread_local BlockRaces* block;
extern thread_local StreamOrder* stream;  // whose work this thread does

// Memory that a descriptor stands for, from `offset` on. What happened there is kept once, wherever it is mapped.
void watch(uint64_t begin, size_t num_bytes, int descriptor, size_t offset = 0);
void watch_host(uint64_t begin, size_t num_bytes);  // for its flags alone
void forget(uint64_t begin, size_t num_bytes);      // what happened there
void unwatch(uint64_t begin);
void begin_detection();

void bulk_access(const Line& copies, uint32_t epoch, const Release& issued, const void* at, uint32_t num_bytes,
                 bool writes, const void* code);
uint32_t issue(Line& copies);  // the epoch of a bulk copy
bool found();                  // by this thread since it last asked

// Of the current stream, none of it without detection:
void record(Clock& event);
void order_after(const Clock& event);
void order_after_word(uint64_t address);
void release_word(uint64_t address);
void boundary();  // later launches begin after what is done now

SharedClock host();                 // what host threads know to be over
void host_saw(const Clock& clock);  // of a stream, an event or a release; nothing without detection
void begin(LaunchOrder& launch, bool early);  // of the current stream
void end(const LaunchOrder& launch);

}  // namespace races

}  // namespace deepep::emulator
