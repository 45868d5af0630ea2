#include "block.h"

#include <sched.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "grid.h"
#include "races.h"

namespace deepep::emulator {

thread_local Self self;

namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kStackEnd = 64;  // bytes at a stack's low end that must stay as they are
constexpr uint8_t kStackMark = 0xd5, kSharedPoison = 0xcb;
constexpr int kNumBarriers = 16;
constexpr uint32_t kWatchRounds = 2000;  // some seconds
constexpr uint32_t kMeetings = 8;  // of a thread between two looks in vain, at most: with more it is at work
constexpr int kWords = 4;          // that a thread looks at in turns while it waits

// A word that a thread has looked at, and what it held.
struct Look {
    const void* address = nullptr;
    uint64_t value = 0;
};

struct Fiber {
    jmp_buf resume_at;
    Dim index;
    uint32_t number;
    uint32_t open_group = 0;  // of bulk stores
    bool started = false;
    const void* looks_at = nullptr;  // while it polls
    Look looks[kWords];              // its last ones
    uint32_t num_looks = 0, num_meetings = 0;
    std::deque<std::pair<uint32_t, uint32_t>> stores, stage_reads;  // group and epoch, for the detection of races
};

struct Gather {
    uint32_t mask, arrived = 0, generation = 0;
    Collective kind;
    uint64_t values[2][32];  // by parity of the generation: a lane may still read the last ones
    Fiber* waiting[32];
    uint32_t num_waiting = 0;
};

struct Warp {
    uint32_t live;
    std::deque<Gather> gathers;  // one for each mask that was met with
};

struct Barrier {
    uint32_t needed = 0, arrived = 0, sum = 0, last_sum = 0;
    std::vector<Fiber*> waiting;
};

struct Copy {
    void* to;
    const void* from;
    uint32_t num_bytes;
    uint64_t* barrier;  // of a load, or null
    Fiber* owner;
    uint32_t group;
    uint32_t epoch = 0, stage_epoch = 0;  // with the detection of races
    Release issued = {};
    const void* code = nullptr;
};

struct MBarrier {
    uint16_t count, pending;
    int32_t bytes : 31;
    uint32_t phase : 1;
};
static_assert(sizeof(MBarrier) == sizeof(uint64_t));

struct Failure {};

}  // namespace

// One block: its fibers take turns on the calling thread.
class Block {
  public:
    Block(const Grid& grid, uint32_t number, Stacks& stacks);
    ~Block();
    bool run();

    void poll(const void* address);
    const uint64_t* gather(uint32_t mask, uint64_t value, Collective kind);
    uint32_t barrier(int id, uint32_t num_threads, uint32_t value, bool waits = true);
    void load(void* to, const void* from, uint32_t num_bytes, uint64_t* barrier, const void* code);
    void store(void* to, const void* from, uint32_t num_bytes, const void* code);
    void commit() { ++current_->open_group; }
    void wait_stores(uint32_t num_pending, bool written);
    WarpActor* actor() { return races_ ? &races_->warp(current_->number / 32) : nullptr; }
    BlockRaces* races() { return races_.get(); }
    void complete(MBarrier& barrier);
    void add(const uint64_t* barrier) { mbarriers_.insert(barrier); }
    [[noreturn]] void fail(const char* what, long a = 0, long b = 0);

  private:
    static void enter();
    void resume(Fiber* fiber);
    void suspend();
    void exit_thread();
    void ready(Fiber* fiber);
    void release(Gather& gather);
    void release(Barrier& barrier);
    void check(const Copy& copy);
    void issue(Copy& copy, const void* code);
    void copy(size_t i);
    bool looks_in_vain(const void* address);
    void meet();
    void progress() { polls_ = idle_rounds_ = 0; }
    void idle();
    void describe() const;
    uint32_t random() { return seed_ = seed_ * 1664525 + 1013904223, seed_ >> 8; }

    const Grid& grid_;
    std::vector<Fiber> fibers_;
    std::vector<Warp> warps_;
    Barrier barriers_[kNumBarriers];
    std::deque<Fiber*> ready_;
    std::vector<Copy> copies_;
    std::set<const uint64_t*> mbarriers_;  // whose memory is for nothing else: they are never invalidated
    std::vector<uint8_t> shared_;
    uint8_t* stacks_;
    uint32_t num_live_, polls_ = 0, idle_rounds_ = 0, seed_;
    bool failed_ = false;
    Fiber* current_ = nullptr;
    jmp_buf scheduler_;
    std::unique_ptr<BlockRaces> races_;
};

namespace {

thread_local Block* block;  // that this thread runs

}  // namespace

Stacks::~Stacks() {
    if (memory_) munmap(memory_, num_bytes_);
}

uint8_t* Stacks::of(uint32_t num_threads) {
    size_t needed = num_threads * kStackBytes;
    if (needed > num_bytes_) {
        if (memory_) munmap(memory_, num_bytes_);
        memory_ = static_cast<uint8_t*>(
            mmap(nullptr, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        num_bytes_ = needed;
    }
    return memory_;
}

Block::Block(const Grid& grid, uint32_t number, Stacks& stacks)
    : grid_(grid),
      stacks_(stacks.of(grid.num_threads())),
      num_live_(grid.num_threads()),
      seed_(grid.seed * 977 + number) {
    self.block = {number % grid.grid.x, number / grid.grid.x % grid.grid.y, number / grid.grid.x / grid.grid.y};
    self.block_dim = grid.block;
    self.grid_dim = grid.grid;
    shared_.assign(grid.shared_bytes + 128, kSharedPoison);
    self.dynamic_shared = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(shared_.data()) + 127) & ~127ull);
    fibers_.resize(num_live_);
    warps_.resize((num_live_ + 31) / 32);
    for (uint32_t i = 0; i < num_live_; ++i) {
        fibers_[i].number = i;
        fibers_[i].index = {i % grid.block.x, i / grid.block.x % grid.block.y, i / grid.block.x / grid.block.y};
        warps_[i / 32].live |= 1u << i % 32;
        memset(stacks_ + i * kStackBytes, kStackMark, kStackEnd);
        ready(&fibers_[i]);
    }
    if (grid.order)
        races_ = std::make_unique<BlockRaces>(static_cast<uint32_t>(warps_.size()), grid.gpu, *grid.order,
                                              self.dynamic_shared, grid.shared_bytes);
}

Block::~Block() {
    races::current = nullptr;
    if (races_) races_->end(grid_.order->end);
}

void Block::enter() {
    block->grid_.kernel->run(block->grid_.params);
    block->exit_thread();
}

void Block::resume(Fiber* fiber) {
    current_ = fiber;
    self.thread = fiber->index;
    races::current = actor();
    races::block = races_.get();
    if (_setjmp(scheduler_) != 0) return;
    if (fiber->started) _longjmp(fiber->resume_at, 1);
    fiber->started = true;
    progress();
    ucontext_t begin;
    getcontext(&begin);
    begin.uc_stack.ss_sp = stacks_ + fiber->number * kStackBytes + kStackEnd;
    begin.uc_stack.ss_size = kStackBytes - kStackEnd;
    begin.uc_link = nullptr;
    makecontext(&begin, enter, 0);
    setcontext(&begin);
}

void Block::suspend() {
    if (_setjmp(current_->resume_at) == 0) _longjmp(scheduler_, 1);
}

void Block::fail(const char* what, long a, long b) {
    fprintf(stderr, "[cuda emulator] %s, block %u, thread %u: ", grid_.name, self.block.x, current_->number);
    fprintf(stderr, what, a, b);
    fputc('\n', stderr);
    failed_ = true;
    _longjmp(scheduler_, 1);
}

void Block::ready(Fiber* fiber) {
    if (random() & 1)
        ready_.push_back(fiber);
    else
        ready_.push_front(fiber);
}

// Every thread has looked at memory in vain.
void Block::idle() {
    if (!copies_.empty()) {
        while (!copies_.empty()) copy(random() % copies_.size());
        return;
    }
    if (idle_rounds_ == kWatchRounds && getenv("DEEPEP_EMULATOR_WATCH")) describe();
    // Hundreds of blocks may wait at once: the longer one has, the less often it looks.
    if (++idle_rounds_ < 4)
        sched_yield();
    else
        usleep(std::min(10u << std::min(idle_rounds_ / 8, 8u), 2000u));
}

// What the threads wait for, a line for each warp.
void Block::describe() const {
    fprintf(stderr, "[cuda emulator] %s, block %u of %u: %u threads wait\n", grid_.name, self.block.x,
            grid_.num_blocks(), num_live_);
    for (auto& b : barriers_)
        if (b.arrived)
            fprintf(stderr, "  barrier %d: %u of %u\n", static_cast<int>(&b - barriers_), b.arrived, b.needed);
    for (auto& w : warps_) {
        fprintf(stderr, "  warp %d: live %08x", static_cast<int>(&w - warps_.data()), w.live);
        for (auto& g : w.gathers)
            if (g.arrived)
                fprintf(stderr, "; %08x of %08x meet (kind %d)", g.arrived, g.mask, static_cast<int>(g.kind));
        const void* last = nullptr;
        for (int lane = 0; lane < 32; ++lane) {
            const void* address = (w.live >> lane & 1) ? fibers_[(&w - warps_.data()) * 32 + lane].looks_at : nullptr;
            if (address && address != last)
                fprintf(stderr, "; lane %d polls %p: %llx", lane, address,
                        *static_cast<const unsigned long long*>(address));
            last = address;
        }
        fputc('\n', stderr);
    }
}

bool Block::run() {
    block = this;
    while (num_live_ > 0 && !failed_) {
        if (polls_ > ready_.size() || ready_.empty()) {
            if (ready_.empty() && copies_.empty()) {
                describe();
                return false;
            }
            polls_ = 0;
            idle();
            continue;
        }
        if (!copies_.empty() && random() % 16 == 0) copy(random() % copies_.size());
        if (ready_.empty()) continue;
        Fiber* next = ready_.front();
        ready_.pop_front();
        resume(next);
    }
    if (!failed_)
        while (!copies_.empty()) copy(copies_.size() - 1);
    for (uint32_t i = 0; i < fibers_.size(); ++i)
        for (size_t j = 0; j < kStackEnd; ++j)
            if (stacks_[i * kStackBytes + j] != kStackMark) {
                fprintf(stderr, "[cuda emulator] %s: a thread needs more than %zu bytes of stack\n", grid_.name,
                        kStackBytes);
                return false;
            }
    return !failed_ && !races::found();
}

void Block::exit_thread() {
    Warp& warp = warps_[current_->number / 32];
    warp.live &= ~(1u << current_->number % 32);
    --num_live_;
    progress();
    for (auto& g : warp.gathers)
        if (g.arrived != 0 && (g.mask & warp.live & ~g.arrived) == 0) release(g);
    Barrier& all = barriers_[0];
    if (all.arrived != 0 && all.arrived >= num_live_) release(all);
    _longjmp(scheduler_, 1);
}

// Whether the word is as the thread has seen it before.
bool Block::looks_in_vain(const void* address) {
    uint64_t value = 0;  // no more than the word is sure to have
    if (address) memcpy(&value, address, reinterpret_cast<uintptr_t>(address) % 8 == 0 ? 8 : 4);
    for (Look& look : current_->looks)
        if (look.address == address) return value == std::exchange(look.value, value);
    current_->looks[current_->num_looks++ % kWords] = {address, value};
    return false;
}

// A thread that waits may meet others between its looks, and a warp that waits does so all the time.
void Block::meet() {
    if (++current_->num_meetings > kMeetings) progress();
}

void Block::poll(const void* address) {
    if (looks_in_vain(address)) {
        ++polls_;
        current_->num_meetings = 0;
    } else {
        progress();
    }
    current_->looks_at = address;
    ready_.push_back(current_);
    suspend();
    current_->looks_at = nullptr;
}

void Block::release(Gather& g) {
    g.arrived = 0;
    ++g.generation;
    for (uint32_t i = 0; i < g.num_waiting; ++i) ready(g.waiting[i]);
    g.num_waiting = 0;
}

const uint64_t* Block::gather(uint32_t mask, uint64_t value, Collective kind) {
    meet();
    uint32_t lane = current_->number % 32;
    Warp& warp = warps_[current_->number / 32];
    if (!(mask >> lane & 1)) fail("lane %ld is not in its mask %lx", lane, mask);
    Gather* g = nullptr;
    for (auto& known : warp.gathers)
        if (known.mask == mask) g = &known;
    if (!g) {
        warp.gathers.emplace_back();
        g = &warp.gathers.back();
        g->mask = mask;
    }
    if (g->arrived == 0) g->kind = kind;
    if (g->kind != kind) fail("lanes of a warp meet in operations of kinds %ld and %ld", long(g->kind), long(kind));
    uint64_t* values = g->values[g->generation & 1];
    values[lane] = value;
    g->arrived |= 1u << lane;
    if ((mask & warp.live & ~g->arrived) == 0) {
        release(*g);
    } else {
        g->waiting[g->num_waiting++] = current_;
        suspend();
    }
    return values;
}

void Block::release(Barrier& b) {
    if (races_) races_->complete(static_cast<int>(&b - barriers_));
    b.last_sum = b.sum;
    b.arrived = b.sum = 0;
    for (Fiber* fiber : b.waiting) ready(fiber);
    b.waiting.clear();
}

uint32_t Block::barrier(int id, uint32_t num_threads, uint32_t value, bool waits) {
    meet();
    if (id < 0 || id >= kNumBarriers || num_threads % 32 != 0) fail("barrier %ld of %ld threads", id, num_threads);
    Barrier& b = barriers_[id];
    uint32_t needed = num_threads ? num_threads : num_live_;
    if (b.arrived != 0 && num_threads != 0 && b.needed != needed)
        fail("barrier of %ld and of %ld threads", b.needed, needed);
    b.needed = needed;
    b.sum += value;
    if (races_) races_->arrive(id, *actor());
    if (++b.arrived >= needed) {
        release(b);
    } else if (waits) {
        b.waiting.push_back(current_);
        suspend();
    }
    uint32_t sum = b.last_sum;
    if (races_ && waits) races_->leave(id, *actor());
    return sum;
}

void Block::check(const Copy& c) {
    if (((reinterpret_cast<uintptr_t>(c.to) | reinterpret_cast<uintptr_t>(c.from) | c.num_bytes) & 15) != 0)
        fail("a bulk copy of %ld bytes that is not aligned to 16", c.num_bytes);
    auto stage = static_cast<const uint8_t*>(c.barrier ? c.to : c.from);
    if (stage < self.dynamic_shared || stage + c.num_bytes > self.dynamic_shared + grid_.shared_bytes)
        fail("a bulk copy of %ld bytes outside shared memory", c.num_bytes);
    if (!c.barrier) return;
    auto first = mbarriers_.lower_bound(reinterpret_cast<uint64_t*>(c.to));
    if (first != mbarriers_.end() && reinterpret_cast<const uint8_t*>(*first) < stage + c.num_bytes)
        fail("a bulk copy of %ld bytes over the mbarrier in byte %ld of them", c.num_bytes,
             reinterpret_cast<const uint8_t*>(*first) - stage);
}

void Block::issue(Copy& copy, const void* code) {
    if (!races_) return;
    copy.issued = actor()->release();
    copy.epoch = races::issue(copy.barrier ? actor()->loads : actor()->stores);
    copy.code = code;
    if (copy.barrier) return;
    copy.stage_epoch = races::issue(actor()->stage_reads);
    current_->stores.emplace_back(copy.group, copy.epoch);
    current_->stage_reads.emplace_back(copy.group, copy.stage_epoch);
}

void Block::load(void* to, const void* from, uint32_t num_bytes, uint64_t* barrier, const void* code) {
    copies_.push_back({to, from, num_bytes, barrier, current_, 0});
    check(copies_.back());
    issue(copies_.back(), code);
}

void Block::store(void* to, const void* from, uint32_t num_bytes, const void* code) {
    copies_.push_back({to, from, num_bytes, nullptr, current_, current_->open_group});
    check(copies_.back());
    issue(copies_.back(), code);
}

void Block::copy(size_t i) {
    Copy c = copies_[i];
    copies_[i] = copies_.back();
    copies_.pop_back();
    memcpy(c.to, c.from, c.num_bytes);
    if (races_) {
        WarpActor& owner = races_->warp(c.owner->number / 32);
        const Line& copies = c.barrier ? owner.loads : owner.stores;
        const Line& reads = c.barrier ? owner.loads : owner.stage_reads;
        uint32_t read_epoch = c.barrier ? c.epoch : c.stage_epoch;
        races::bulk_access(reads, read_epoch, c.issued, c.from, c.num_bytes, false, c.code);
        races::bulk_access(copies, c.epoch, c.issued, c.to, c.num_bytes, true, c.code);
        if (c.barrier) races_->arrive(c.barrier, copies, c.epoch);
    }
    if (c.barrier) {
        auto& barrier = *reinterpret_cast<MBarrier*>(c.barrier);
        barrier.bytes -= static_cast<int32_t>(c.num_bytes);
        complete(barrier);
    }
}

void Block::wait_stores(uint32_t num_pending, bool written) {
    for (size_t i = copies_.size(); i-- > 0;)
        if (copies_[i].owner == current_ && !copies_[i].barrier &&
            copies_[i].group + num_pending < current_->open_group) {
            copy(i);
            i = copies_.size();  // another one moved to its place
        }
    auto acquire = [&](std::deque<std::pair<uint32_t, uint32_t>>& epochs, uint32_t copies) {
        for (; !epochs.empty() && epochs.front().first + num_pending < current_->open_group; epochs.pop_front())
            actor()->acquire(copies, epochs.front().second);
    };
    if (races_) {
        acquire(current_->stage_reads, actor()->stage_reads.actor);
        if (written) acquire(current_->stores, actor()->stores.actor);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void Block::complete(MBarrier& barrier) {
    if (barrier.pending != 0 || barrier.bytes != 0) return;
    barrier.phase ^= 1;
    if (races_) races_->complete(reinterpret_cast<uint64_t*>(&barrier));
    barrier.pending = barrier.count;
}

void poll(const void* address) { block->poll(address); }

const uint64_t* gather(uint32_t mask, uint64_t value, Collective kind) { return block->gather(mask, value, kind); }

uint32_t barrier(int id, uint32_t num_threads, uint32_t value) { return block->barrier(id, num_threads, value); }

void barrier_arrive(int id, uint32_t num_threads) { block->barrier(id, num_threads, 0, false); }

void mbarrier_init(uint64_t* barrier, uint32_t num_arrivals) {
    MBarrier fresh = {};
    fresh.count = fresh.pending = static_cast<uint16_t>(num_arrivals);
    memcpy(barrier, &fresh, sizeof(fresh));
    block->add(barrier);
}

void mbarrier_arrive(uint64_t* barrier, uint32_t expected_bytes) {
    if (block->races()) block->races()->arrive(barrier, *block->actor());
    auto& b = *reinterpret_cast<MBarrier*>(barrier);
    if (b.pending == 0) block->fail("more than %ld arrivals at an mbarrier", b.count);
    --b.pending;
    b.bytes += static_cast<int32_t>(expected_bytes);
    block->complete(b);
}

bool mbarrier_try_wait(uint64_t* barrier, uint32_t parity) {
    auto& b = *reinterpret_cast<MBarrier*>(barrier);
    if (b.phase == parity) block->poll(barrier);
    bool complete = b.phase != parity;
    if (complete && block->races()) block->races()->leave(barrier, *block->actor());
    return complete;
}

void bulk_load(void* to, const void* from, uint32_t num_bytes, uint64_t* barrier) {
    block->load(to, from, num_bytes, barrier, __builtin_return_address(0));
}
void bulk_store(void* to, const void* from, uint32_t num_bytes) {
    block->store(to, from, num_bytes, __builtin_return_address(0));
}
void bulk_commit() { block->commit(); }
void bulk_wait(uint32_t num_pending, bool written) { block->wait_stores(num_pending, written); }

void await_previous_launch() {
    if (block->races()) block->races()->await_previous_launch(*block->actor());
}

bool run_block(const Grid& grid, uint32_t number, Stacks& stacks) { return Block(grid, number, stacks).run(); }

}  // namespace deepep::emulator
