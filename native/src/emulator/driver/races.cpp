#include "races.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "block.h"

namespace deepep::emulator {

namespace races {

bool on;
thread_local WarpActor* current;
thread_local BlockRaces* block;
thread_local StreamOrder* stream;

}  // namespace races

constexpr size_t kCell = 4;  // bytes
constexpr int kReads = 3;

enum class Kind : uint8_t { kPlain, kAtomic, kBulk };

// An access: of some bytes of a cell.
struct Access {
    uint32_t epoch;
    uint16_t actor;
    uint8_t bytes;  // a bit each
    Kind kind;
    const void* code;
};

struct Cell {
    Access write, reads[kReads];
};
static_assert(sizeof(Cell) == 64);

namespace {

constexpr uint32_t kMaxActors = 16384;

struct Range {
    uint64_t begin, end;
    Cell* cells;  // null: of the host
};

// What a load of a word acquires: from another GPU, and from the same one.
struct Word {
    Release sys, gpu;
    int from;
    SharedClock ended;  // what may be overwritten that was read: by earlier launches
    Release read;       // and by whoever wrote the word
};

constexpr size_t kLocks = 4096;
std::mutex locks[kLocks];
struct Words {
    std::mutex mutex;
    std::unordered_map<const Cell*, Word> of;
};
auto* words = new Words[kLocks];

size_t hash(const Cell* cell) { return reinterpret_cast<uintptr_t>(cell) / sizeof(Cell) % kLocks; }

// What is mapped, by when device code may not tell of its accesses yet.
struct Mapping {
    uint64_t begin, end;
    ino_t memory;  // 0: of the host
    size_t memory_bytes, offset;
};

std::mutex ranges_mutex;
auto& mappings = *new std::vector<Mapping>;
std::atomic<const std::vector<Range>*> ranges{new std::vector<Range>};  // old ones stay: someone may read them
auto& shadows = *new std::map<ino_t, Cell*>;

Cell* shadow_of(const Mapping& mapping) {
    if (mapping.memory == 0) return nullptr;
    Cell*& shadow = shadows[mapping.memory];
    if (!shadow) {
        void* cells = mmap(nullptr, mapping.memory_bytes / kCell * sizeof(Cell), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (cells == MAP_FAILED) perror("[cuda emulator] no memory for the detection of races"), abort();
        shadow = static_cast<Cell*>(cells);
    }
    return shadow + mapping.offset / kCell;
}

// With the mutex held.
void update_ranges() {
    if (!races::on) return;
    auto* now = new std::vector<Range>;
    for (const Mapping& mapping : mappings) now->push_back({mapping.begin, mapping.end, shadow_of(mapping)});
    ranges.store(now, std::memory_order_release);
}

std::mutex order_mutex;
auto& host_clock = *new SharedClock(std::make_shared<Clock>());

std::mutex actors_mutex;
auto& free_actors = *new std::deque<Line>;
uint32_t num_actors = 0;  // made so far

// Those that were free longest: accesses of the one before count as ordered.
Line new_actor() {
    std::lock_guard lock(actors_mutex);
    Line line;
    if (num_actors + 1 < kMaxActors && free_actors.size() < 512) {
        line = {++num_actors, 0};
    } else {
        if (free_actors.empty()) {
            fprintf(stderr, "[cuda emulator] too many warps for the detection of races\n");
            abort();
        }
        line = free_actors.front();
        free_actors.pop_front();
    }
    ++line.epoch;
    return line;
}

void give_back(const Line& line) {
    if (line.actor == 0) return;
    std::lock_guard lock(actors_mutex);
    free_actors.push_back(line);
}

const Range& range_of(uint64_t address) {
    thread_local const std::vector<Range>* known = nullptr;
    thread_local Range last{};
    auto* now = ranges.load(std::memory_order_acquire);
    if (known != now || address < last.begin || address >= last.end) {
        known = now;
        last = {};
        for (const Range& range : *now)
            if (address >= range.begin && address < range.end) last = range;
    }
    return last;
}

// When each actor has fenced all memory between the proxies.
std::mutex proxy_fences_mutex;
auto& proxy_fences = *new std::unordered_map<uint32_t, std::vector<uint32_t>>;

bool has_proxy_fenced(const Line& access, const Clock& clock) {
    std::lock_guard lock(proxy_fences_mutex);
    auto known = proxy_fences.find(access.actor);
    if (known == proxy_fences.end()) return false;
    auto next = std::lower_bound(known->second.begin(), known->second.end(), access.epoch);
    return next != known->second.end() && clock.covers(access.actor, *next);
}

Cell* cell_of(uint64_t address) {
    const Range& range = range_of(address);
    return range.cells ? range.cells + (address - range.begin) / kCell : nullptr;
}

std::string source_of(const void* code) {
    Dl_info info;
    if (!dladdr(code, &info)) return "?";
    char command[256];
    std::string path = info.dli_fname;
    if (path.rfind("/proc/self/", 0) == 0) path = "/proc/" + std::to_string(getpid()) + path.substr(10);
    snprintf(command, sizeof(command), "addr2line -Cpife %s %#zx 2>/dev/null", path.c_str(),
             reinterpret_cast<uintptr_t>(code) - reinterpret_cast<uintptr_t>(info.dli_fbase) - 1);
    std::string text;
    if (FILE* out = popen(command, "r")) {
        char line[512];
        while (fgets(line, sizeof(line), out)) text += std::string("    ") + line;
        pclose(out);
    }
    return text;
}

thread_local bool races_found;

constexpr const char* kRace = "  which nothing orders after ";
constexpr const char* kProxyRace = "  which no fence between the proxies orders after ";

void report(const Access& before, bool before_writes, const Access& now, bool writes, uint64_t address,
            const char* how = kRace) {
    static std::mutex mutex;
    static std::set<std::pair<const void*, const void*>> known;
    static std::set<std::string> reported;
    races_found = true;
    std::lock_guard lock(mutex);
    if (!known.insert({before.code, now.code}).second) return;
    auto describe = [](bool w, const Access& a) {
        const char* kinds[] = {"", "atomic ", "bulk "};
        return std::string(kinds[static_cast<int>(a.kind)]) + (w ? "write" : "read") + "\n" + source_of(a.code);
    };
    std::string text = describe(writes, now) + how + describe(before_writes, before);
    if (!reported.insert(text).second) return;  // of another GPU's copy of the code
    fprintf(stderr, "[cuda emulator] race at %#lx: %s", static_cast<unsigned long>(address), text.c_str());
}

// What an access comes after: a clock, and one actor's own way since.
struct Past {
    const Clock& clock;
    Line own;

    bool covers(const Access& access) const {
        return clock.covers(access.actor, access.epoch) || (access.actor == own.actor && access.epoch <= own.epoch);
    }
};

bool overlap(const Access& before, const Access& now) { return before.epoch != 0 && before.bytes & now.bytes; }

bool conflict(const Access& before, const Access& now, const Past& past) {
    return overlap(before, now) && !(before.kind == Kind::kAtomic && now.kind == Kind::kAtomic) &&
           before.actor != now.actor && !past.covers(before);
}

// Of a bulk copy, after an ordinary access that is otherwise in order.
bool lacks_proxy_fence(const Access& before, const Access& now, const Past& past, bool is_shared) {
    if (now.kind != Kind::kBulk || before.kind == Kind::kBulk || !overlap(before, now)) return false;
    thread_local Line fenced[2], fenced_for[2];  // the last one, of either memory
    Line access = {before.actor, before.epoch};
    if (fenced[is_shared] == access && fenced_for[is_shared] == past.own) return false;
    if (!races::block->is_proxy_fenced(access, past.clock, past.own, is_shared)) return true;
    fenced[is_shared] = access, fenced_for[is_shared] = past.own;
    return false;
}

void access(Cell* cell, const Access& now, bool writes, const Past& past, uint64_t address, bool is_shared) {
    auto check = [&](const Access& before, bool before_writes) {
        if (conflict(before, now, past)) {
            if (before_writes || !races::block->knows_read(before.actor, before.epoch))
                report(before, before_writes, now, writes, address);
        } else if (lacks_proxy_fence(before, now, past, is_shared)) {
            report(before, before_writes, now, writes, address, kProxyRace);
        }
    };
    check(cell->write, true);
    if (writes) {
        for (Access& read : cell->reads) {
            check(read, false);
            if (read.bytes & now.bytes) read = {};
        }
        cell->write = now;
        return;
    }
    Access* place = nullptr;
    for (Access& read : cell->reads)
        if (!place && (read.epoch == 0 || read.actor == now.actor || past.covers(read))) place = &read;
    if (!place) place = &cell->reads[(now.epoch + now.actor) % kReads];
    *place = now;
}

void access(const Past& past, const Line& line, const void* at, uint32_t num_bytes, bool writes, Kind kind,
            const void* code) {
    auto address = reinterpret_cast<uint64_t>(at);
    bool is_shared = races::block->has_shared(address);
    Cell* cell = is_shared ? races::block->shared_cell(address) : cell_of(address);
    if (!cell) return;
    uint64_t end = address + num_bytes;
    for (; address < end; ++cell) {
        uint64_t next = (address & ~(kCell - 1)) + kCell;
        uint64_t last = std::min(next, end);
        auto bytes = static_cast<uint8_t>(((1u << (last - address)) - 1) << (address & (kCell - 1)));
        Access now = {line.epoch, static_cast<uint16_t>(line.actor), bytes, kind, code};
        std::unique_lock<std::mutex> lock;
        if (!is_shared) lock = std::unique_lock(locks[hash(cell)]);  // a block is one thread's
        access(cell, now, writes, past, address, is_shared);
        address = next;
    }
}

thread_local bool speculates;

void tell(const void* at, uint32_t num_bytes, bool writes, bool atomic, const void* code) {
    WarpActor* actor = races::current;
    if (!actor || speculates) return;
    Kind kind = atomic ? Kind::kAtomic : Kind::kPlain;
    access({actor->clock, actor->line}, actor->line, at, num_bytes, writes, kind, code);
}

}  // namespace

bool Clock::join(const Clock& other) {
    if (at.size() < other.at.size()) at.resize(other.at.size());
    uint32_t changed = 0;
    for (size_t i = 0; i < other.at.size(); ++i) {
        uint32_t later = std::max(at[i], other.at[i]);
        changed |= later ^ at[i];
        at[i] = later;
    }
    return changed != 0;
}

void Clock::raise(uint32_t actor, uint32_t epoch) {
    if (at.size() <= actor) at.resize(actor + 1);
    at[actor] = std::max(at[actor], epoch);
}

bool races::found() { return std::exchange(races_found, false); }

void Release::join_into(Clock& other) const {
    other.join(*clock);
    other.raise(actor, epoch);
}

Release WarpActor::release() {
    if (!copy) copy = std::make_shared<Clock>(clock);
    Release now = {copy, line.actor, line.epoch};
    clock.raise(line.actor, ++line.epoch);
    return now;
}

void WarpActor::fence_proxy(bool shared_alone) {
    Release now = release();
    proxy_fences[0].push_back(now);
    if (shared_alone) return;
    proxy_fences[1].push_back(now);
    std::lock_guard lock(proxy_fences_mutex);
    emulator::proxy_fences[line.actor].push_back(now.epoch);
}

void WarpActor::acquire(const SharedClock& other) {
    if (std::find(std::begin(acquired), std::end(acquired), other) != std::end(acquired)) return;
    acquired[next_acquired++ % std::size(acquired)] = other;
    if (clock.join(*other)) copy.reset();
}

void WarpActor::acquire(uint32_t actor, uint32_t epoch) {
    if (clock.covers(actor, epoch)) return;
    clock.raise(actor, epoch);
    copy.reset();
}

void WarpActor::acquire(const Release& other) {
    acquire(other.clock);
    acquire(other.actor, other.epoch);
}

BlockRaces::BlockRaces(uint32_t num_warps, int gpu, const LaunchOrder& order, uint8_t* shared, uint32_t shared_bytes)
    : order_(order),
      shared_(reinterpret_cast<uint64_t>(shared)),
      shared_bytes_(shared_bytes),
      shared_cells_(new Cell[(shared_bytes + kCell - 1) / kCell]()),
      ended_(order.start) {
    for (uint32_t i = 0; i < num_warps; ++i) {
        auto actor = std::make_unique<WarpActor>();
        actor->line = new_actor();
        actor->gpu = gpu;
        actor->clock = *order.start;
        actor->clock.raise(actor->line.actor, actor->line.epoch);
        warps_.push_back(std::move(actor));
    }
}

BlockRaces::~BlockRaces() {
    for (auto& actor : warps_) {
        give_back(actor->line);
        give_back(actor->loads);
        give_back(actor->stores);
        give_back(actor->stage_reads);
    }
}

void BlockRaces::arrive(int barrier, WarpActor& actor) {
    static std::atomic<uint64_t> num_meetings;
    Meeting& meeting = barriers_[barrier];
    if (meeting.number == 0) meeting.number = ++num_meetings;
    Release now = actor.release();
    if (actor.meeting != meeting.number || actor.arrived != now.clock) {
        actor.meeting = meeting.number;
        actor.arrived = now.clock;
        meeting.arrived.join(*now.clock);
    }
    meeting.arrived.raise(now.actor, now.epoch);
}

void BlockRaces::complete(int barrier) {
    Meeting& meeting = barriers_[barrier];
    meeting = {0, {}, std::make_shared<Clock>(std::move(meeting.arrived))};
}

void BlockRaces::leave(int barrier, WarpActor& actor) { actor.acquire(barriers_[barrier].complete); }

void BlockRaces::arrive(const uint64_t* mbarrier, WarpActor& actor) {
    actor.release().join_into(mbarriers_[mbarrier].arrived);
}

void BlockRaces::arrive(const uint64_t* mbarrier, const Line& copies, uint32_t epoch) {
    mbarriers_[mbarrier].arrived.raise(copies.actor, epoch);
}

void BlockRaces::complete(const uint64_t* mbarrier) {
    Meeting& meeting = mbarriers_[mbarrier];
    meeting.complete = std::make_shared<Clock>(meeting.arrived);
}

void BlockRaces::leave(const uint64_t* mbarrier, WarpActor& actor) {
    Meeting& meeting = mbarriers_[mbarrier];
    if (meeting.complete) actor.acquire(meeting.complete);  // not before its first phase
}

void BlockRaces::await_previous_launch(WarpActor& actor) {
    actor.acquire(order_.previous);
    ended_ = order_.previous;
}

void BlockRaces::Learned::join(const SharedClock& other) {
    if (!other || std::find(std::begin(last), std::end(last), other) != std::end(last)) return;
    last[next++ % std::size(last)] = other;
    of.join(*other);
}

void BlockRaces::learn(const SharedClock& ended, const Release& read) {
    others_ended_.join(ended);
    others_read_.join(read.clock);
    if (read) others_read_.of.raise(read.actor, read.epoch);
}

Cell* BlockRaces::shared_cell(uint64_t address) const { return &shared_cells_[(address - shared_) / kCell]; }

// Whether the access is of an earlier launch, or a fence between the proxies lies between it and what has this past.
bool BlockRaces::is_proxy_fenced(const Line& access, const Clock& clock, const Line& own, bool is_shared) const {
    if (order_.previous->covers(access.actor, access.epoch) || knows_ended(access.actor, access.epoch)) return true;
    for (auto& warp : warps_) {
        uint32_t actor = warp->line.actor;
        uint32_t seen = actor == own.actor ? own.epoch : actor < clock.at.size() ? clock.at[actor] : 0;
        auto& fences = warp->proxy_fences[is_shared ? 0 : 1];
        auto later = std::upper_bound(fences.begin(), fences.end(), seen,
                                      [](uint32_t epoch, const Release& fence) { return epoch < fence.epoch; });
        if (later == fences.begin()) continue;
        const Release& last = *std::prev(later);
        if (last.clock->covers(access.actor, access.epoch)) return true;
        if (last.actor == access.actor && access.epoch <= last.epoch) return true;
    }
    return !is_shared && has_proxy_fenced(access, clock);
}

void BlockRaces::end(Clock& all) {
    std::lock_guard lock(order_mutex);
    for (auto& actor : warps_) {
        actor->release().join_into(all);
        for (const Line& copies : {actor->loads, actor->stores})
            if (copies.actor) all.raise(copies.actor, copies.epoch);
    }
}

namespace races {

void watch(uint64_t begin, size_t num_bytes, int descriptor, size_t offset) {
    struct stat status;
    fstat(descriptor, &status);
    std::lock_guard lock(ranges_mutex);
    mappings.push_back({begin, begin + num_bytes, status.st_ino, static_cast<size_t>(status.st_size), offset});
    update_ranges();
}

void watch_host(uint64_t begin, size_t num_bytes) {
    std::lock_guard lock(ranges_mutex);
    mappings.push_back({begin, begin + num_bytes, 0, 0, 0});
    update_ranges();
}

void unwatch(uint64_t begin) {
    std::lock_guard lock(ranges_mutex);
    auto gone = std::find_if(mappings.begin(), mappings.end(), [&](const Mapping& m) { return m.begin == begin; });
    if (gone == mappings.end()) return;
    ino_t memory = gone->memory;
    size_t num_bytes = gone->memory_bytes;
    mappings.erase(gone);
    update_ranges();
    auto shadow = shadows.find(memory);
    bool mapped = std::any_of(mappings.begin(), mappings.end(), [&](const Mapping& m) { return m.memory == memory; });
    if (mapped || shadow == shadows.end()) return;
    munmap(shadow->second, num_bytes / kCell * sizeof(Cell));
    shadows.erase(shadow);
}

void begin_detection() {
    std::lock_guard lock(ranges_mutex);
    if (std::exchange(on, true)) return;
    update_ranges();
}

void forget(uint64_t begin, size_t num_bytes) {
    if (!on || num_bytes == 0) return;
    Cell* cell = cell_of(begin);
    if (!cell) return;
    Cell* end = cell + (num_bytes + kCell - 1) / kCell;
    constexpr size_t kPage = 4096 / sizeof(Cell);
    auto page = [](Cell* c) { return reinterpret_cast<uintptr_t>(c) / 4096; };
    while (cell < end) {
        size_t count = kPage - reinterpret_cast<uintptr_t>(cell) % 4096 / sizeof(Cell);
        if (cell + count > end) count = end - cell;
        if (count == kPage) {
            size_t pages = page(end) - page(cell);
            madvise(cell, pages * 4096, MADV_DONTNEED);
            cell += pages * kPage;
        } else {
            memset(static_cast<void*>(cell), 0, count * sizeof(Cell));
            cell += count;
        }
    }
}

void bulk_access(const Line& copies, uint32_t epoch, const Release& issued, const void* at,
                 uint32_t num_bytes, bool writes, const void* code) {
    access({*issued.clock, {issued.actor, issued.epoch}}, {copies.actor, epoch}, at, num_bytes, writes, Kind::kBulk,
           code);
}

uint32_t issue(Line& copies) {
    if (copies.actor == 0) copies = new_actor();
    return ++copies.epoch;
}

void record(Clock& event) {
    if (!on) return;
    std::lock_guard lock(order_mutex);
    event.join(stream->done);
}

void order_after(const Clock& event) {
    if (!on) return;
    std::lock_guard lock(order_mutex);
    stream->done.join(event);
    stream->before_last.join(event);
}

void order_after_word(uint64_t address) {
    if (!on) return;
    const Cell* cell = cell_of(address);
    if (!cell) return order_after(*host());
    Words& w = words[hash(cell)];
    std::lock_guard lock(w.mutex);
    auto known = w.of.find(cell);
    if (known == w.of.end() || !known->second.sys) return;
    Clock released;
    known->second.sys.join_into(released);
    order_after(released);
}

void release_word(uint64_t address) {
    if (!on) return;
    SharedClock now;
    {
        std::lock_guard lock(order_mutex);
        now = std::make_shared<Clock>(stream->done);
    }
    const Cell* cell = cell_of(address);
    if (!cell) return host_saw(*now);
    Words& w = words[hash(cell)];
    std::lock_guard lock(w.mutex);
    w.of[cell] = {{now}, {}, -1, nullptr, {}};
}

SharedClock host() {
    std::lock_guard lock(order_mutex);
    return host_clock;
}

void host_saw(const Clock& clock) {
    if (!on) return;
    std::lock_guard lock(order_mutex);
    auto later = std::make_shared<Clock>(*host_clock);
    if (later->join(clock)) host_clock = later;
}

void begin(LaunchOrder& launch, bool early) {
    std::lock_guard lock(order_mutex);
    if (!early) stream->before_last = stream->done;
    launch.start = std::make_shared<Clock>(stream->before_last);
    launch.previous = std::make_shared<Clock>(stream->done);
}

void end(const LaunchOrder& launch) {
    std::lock_guard lock(order_mutex);
    stream->done.join(launch.end);
}

void boundary() {
    if (!on || !stream) return;
    std::lock_guard lock(order_mutex);
    stream->before_last = stream->done;
}

}  // namespace races

// Between the two, the word belongs to the calling thread.
Atomic::Atomic(const void* at, uint32_t num_bytes, bool loads, bool stores, int order, Scope scope)
    : at_(at), num_bytes_(num_bytes), loads_(loads), stores_(stores), order_(order), scope_(scope) {
    if (!races::on || !races::current) return;
    code_ = __builtin_return_address(0);
    const Cell* cell = cell_of(reinterpret_cast<uint64_t>(at));
    cell_ = cell;
    if (cell) words[hash(cell)].mutex.lock();
}

Atomic::~Atomic() {
    if (!races::on || !races::current) return;
    WarpActor& self = *races::current;
    bool acquires = loads_ && (order_ == __ATOMIC_ACQUIRE || order_ == __ATOMIC_ACQ_REL);
    bool releases = stores_ && (order_ == __ATOMIC_RELEASE || order_ == __ATOMIC_ACQ_REL);
    bool system = scope_ == Scope::kSystem;
    auto take = [&](const Release& told, Scope scope) {
        if (!told) return;
        if (acquires)
            self.acquire(told);
        else
            told.join_into(self.seen[static_cast<int>(scope)]);
    };
    auto give = [&](Scope scope) { return releases ? self.release() : self.released[static_cast<int>(scope)]; };
    auto replace = [&](Release& old, const Release& added) {
        if (!loads_ || !old) {
            old = added;
        } else if (added) {  // who reads the sum has read all of it
            auto both = std::make_shared<Clock>();
            old.join_into(*both);
            added.join_into(*both);
            old = {both};
        }
    };
    if (!cell_ && range_of(reinterpret_cast<uint64_t>(at_)).end == 0) {  // of shared memory
        Release& word = races::block->word(at_);
        if (loads_) take(word, Scope::kBlock);
        if (stores_) replace(word, give(Scope::kBlock));
        return;
    }
    if (!cell_) {
        if (loads_) take({races::host()}, Scope::kSystem);
        Release told = stores_ ? give(Scope::kSystem) : Release{};
        if (told) {
            Clock clock;
            told.join_into(clock);
            races::host_saw(clock);
        }
        return;
    }
    auto cell = static_cast<const Cell*>(cell_);
    auto& of = words[hash(cell)].of;
    auto known = of.find(cell);
    Word word = known == of.end() ? Word{{}, {}, self.gpu, nullptr, {}} : known->second;
    if (loads_ && system) races::block->learn(word.ended, word.read);
    if (loads_ && word.from == self.gpu) take(word.gpu, Scope::kGpu);
    if (loads_ && system) take(word.sys, Scope::kSystem);
    if (stores_) {
        Release gpu = give(Scope::kGpu), sys = !system ? Release{} : releases ? gpu : give(Scope::kSystem);
        if (word.from != self.gpu) word.gpu = {}, word.from = self.gpu;
        replace(word.gpu, gpu);
        replace(word.sys, sys);
        word.ended = system ? races::block->ended() : nullptr;
        word.read = system ? self.release() : Release{};
        of[cell] = word;
    }
    if (loads_) tell(at_, num_bytes_, false, true, code_);
    if (stores_) tell(at_, num_bytes_, true, true, code_);
    words[hash(cell)].mutex.unlock();
}

Speculation::Speculation(bool is_meant) { speculates = is_meant; }
Speculation::~Speculation() { speculates = false; }

void fence(Scope scope) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!races::on || !races::current) return;
    WarpActor& self = *races::current;
    int reach = static_cast<int>(scope) + 1;
    for (int i = 0; i < reach; ++i)
        if (!self.seen[i].at.empty()) {
            if (self.clock.join(self.seen[i])) self.copy.reset();
            self.seen[i] = {};
        }
    Release now = self.release();
    std::fill_n(self.released, reach, now);
}

void fence_proxy(bool shared_alone) {
    if (races::on && races::current) races::current->fence_proxy(shared_alone);
}

}  // namespace deepep::emulator

// What the compiler puts in front of each access. Volatile ones are relaxed, as in CUDA.
#define TELL(name, num_bytes, writes, atomic)                                                       \
    extern "C" void __tsan_##name(const void* at) {                                                 \
        deepep::emulator::tell(at, num_bytes, writes, atomic, __builtin_return_address(0));         \
    }
#define TELL_ACCESSES(n)                                                                            \
    TELL(read##n, n, false, false)                                                                  \
    TELL(write##n, n, true, false)                                                                  \
    TELL(unaligned_read##n, n, false, false)                                                        \
    TELL(unaligned_write##n, n, true, false)                                                        \
    TELL(volatile_read##n, n, false, true)                                                          \
    TELL(volatile_write##n, n, true, true)                                                          \
    TELL(unaligned_volatile_read##n, n, false, true)                                                \
    TELL(unaligned_volatile_write##n, n, true, true)
TELL_ACCESSES(1)
TELL_ACCESSES(2)
TELL_ACCESSES(4)
TELL_ACCESSES(8)
TELL_ACCESSES(16)

extern "C" void __tsan_read_range(const void* at, unsigned long num_bytes) {
    deepep::emulator::tell(at, num_bytes, false, false, __builtin_return_address(0));
}
extern "C" void __tsan_write_range(const void* at, unsigned long num_bytes) {
    deepep::emulator::tell(at, num_bytes, true, false, __builtin_return_address(0));
}
extern "C" void __tsan_init() { deepep::emulator::races::begin_detection(); }
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}

// What the compiler puts in place of atomic operations. What they order, Atomic and fence say.
#define OPERATION(bits, name, returned, parameters, operation) \
    extern "C" returned __tsan_atomic##bits##_##name parameters { return operation; }
#define OPERATIONS(type, bits)                                                                            \
    OPERATION(bits, load, type, (const type* p, int), __atomic_load_n(p, __ATOMIC_SEQ_CST))               \
    OPERATION(bits, store, void, (type* p, type v, int), __atomic_store_n(p, v, __ATOMIC_SEQ_CST))        \
    OPERATION(bits, exchange, type, (type* p, type v, int),                                               \
              __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST))                                                \
    OPERATION(bits, fetch_add, type, (type* p, type v, int),                                              \
              __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST))                                                 \
    OPERATION(bits, fetch_or, type, (type* p, type v, int),                                               \
              __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST))                                                  \
    OPERATION(bits, compare_exchange_strong, int, (type* p, type* expected, type v, int, int),            \
              __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
OPERATIONS(uint32_t, 32)
OPERATIONS(uint64_t, 64)
extern "C" void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
