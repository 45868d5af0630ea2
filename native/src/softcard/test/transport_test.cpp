// Drives NVSHMEM's own transport plugins over the card, without a GPU: two processes, memory of the host.
//
//   transport_test PLUGIN [CASE...]
//
// One line for each case; the exit status says whether all are well. The plugin is the one that NVSHMEM ships.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "transport_interface.h"

using namespace transport;

namespace {

constexpr int kNumPes = 2;
constexpr int kForProxy = 1;
constexpr size_t kHeapBytes = 8 << 20;
constexpr size_t kLargeBytes = 3'000'001;
constexpr auto kPatience = std::chrono::seconds(20);

// What the processes have in common: a barrier, and a board for what the plugin exchanges.
struct Shared {
    std::atomic<int> arrived, round;
    std::atomic<int> failed;
    char board[kNumPes][1 << 20];
};

Shared* shared;
int own_pe;

void meet() {
    int round = shared->round;
    if (shared->arrived.fetch_add(1) == kNumPes - 1) {
        shared->arrived = 0;
        shared->round++;
        return;
    }
    auto end = std::chrono::steady_clock::now() + kPatience;
    while (shared->round == round) {
        if (std::chrono::steady_clock::now() > end) {
            std::printf("PE %d waits for its peer in vain\n", own_pe);
            std::exit(3);
        }
        usleep(50);
    }
}

int gather(const void* in, void* out, int num_bytes, Bootstrap*) {
    std::memcpy(shared->board[own_pe], in, static_cast<size_t>(num_bytes));
    meet();
    for (int pe = 0; pe < kNumPes; pe++) {
        std::memcpy(static_cast<char*>(out) + pe * num_bytes, shared->board[pe], static_cast<size_t>(num_bytes));
    }
    meet();
    return 0;
}

int exchange(const void* in, void* out, int num_bytes, Bootstrap*) {
    std::memcpy(shared->board[own_pe], in, static_cast<size_t>(num_bytes) * kNumPes);
    meet();
    for (int pe = 0; pe < kNumPes; pe++) {
        std::memcpy(static_cast<char*>(out) + pe * num_bytes, shared->board[pe] + own_pe * num_bytes,
                    static_cast<size_t>(num_bytes));
    }
    meet();
    return 0;
}

int barrier(Bootstrap*) {
    meet();
    return 0;
}

// The driver's functions that a plugin calls while it starts: a device that offers dma-buf.
int get_device(int* device) {
    *device = 0;
    return 0;
}

int get_attribute(int* value, int, int) {
    *value = 1;
    return 0;
}

struct Pe {
    Transport* transport = nullptr;
    Bootstrap bootstrap{};
    uint8_t* heap = nullptr;
    uint8_t* peer_heap = nullptr;
    MemoryHandle own{}, handles[kNumPes]{};
    int peer = 0;

    bool start(const std::string& plugin);
    bool put(size_t to, size_t from, size_t num_bytes);
    bool put_signal(size_t to, size_t from, size_t num_bytes, size_t signal, uint64_t value);
    bool atomic(nvshmemi_amo_t operation, size_t at, uint64_t value);
    bool quiet() { return transport->operations.quiet(transport, peer, kForProxy) == 0; }
    Place remote(size_t at) { return {peer_heap + at, at, &handles[peer]}; }
    Place local(size_t at) { return {heap + at, at, &own}; }
    volatile uint64_t& word(size_t at) { return *reinterpret_cast<volatile uint64_t*>(heap + at); }
};

bool Pe::start(const std::string& plugin) {
    void* library = dlopen(plugin.c_str(), RTLD_NOW);
    if (library == nullptr) {
        std::printf("%s\n", dlerror());
        return false;
    }
    static void* functions[64];
    functions[0] = reinterpret_cast<void*>(get_device);
    functions[3] = reinterpret_cast<void*>(get_attribute);
    auto init = reinterpret_cast<Init>(dlsym(library, "nvshmemt_init"));
    int version = NVSHMEM_TRANSPORT_PLUGIN_MAJOR_VERSION * 10000 + NVSHMEM_TRANSPORT_PLUGIN_MINOR_VERSION * 100;
    if (init == nullptr || init(&transport, functions, version) != 0) return false;
    bootstrap = {1, own_pe, kNumPes, own_pe, kNumPes, gather, exchange, barrier, nullptr, nullptr, nullptr, nullptr,
                 nullptr};
    transport->bootstrap = &bootstrap;
    transport->pe = own_pe;
    transport->num_pes = kNumPes;
    transport->log2_granularity = 29;
    peer = 1 - own_pe;
    heap = static_cast<uint8_t*>(mmap(nullptr, kHeapBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    transport->heap_base = heap;
    int ports[] = {0, 1}, num_ports = std::getenv("TEST_PORTS") == nullptr ? 1 : 2;
    if (transport->operations.connect_endpoints(transport, ports, num_ports) != 0) return false;
    if (transport->operations.get_mem_handle(&own, heap, kHeapBytes, transport, false) != 0) return false;
    gather(&own, handles, sizeof(own), nullptr);
    uint8_t* heaps[kNumPes];
    gather(&heap, heaps, sizeof(heap), nullptr);
    peer_heap = heaps[peer];
    return true;
}

bool Pe::put(size_t to, size_t from, size_t num_bytes) {
    Place target = remote(to), source = local(from);
    Extent extent{num_bytes, 1, 1, 1};
    return transport->operations.rma(transport, peer, {NVSHMEMI_OP_PUT, 1, 0, nullptr}, &target, &source, extent,
                                     kForProxy) == 0;
}

// As NVSHMEM's proxy does it: the data, a fence where the plugin has one, the signal.
bool Pe::put_signal(size_t to, size_t from, size_t num_bytes, size_t signal, uint64_t value) {
    const Operations& operations = transport->operations;
    return put(to, from, num_bytes) &&
           (operations.fence == nullptr || operations.fence(transport, peer, kForProxy) == 0) &&
           atomic(NVSHMEMI_AMO_SIGNAL_SET, signal, value);
}

bool Pe::atomic(nvshmemi_amo_t operation, size_t at, uint64_t value) {
    AtomicTarget target{};
    target.place = remote(at);
    target.value = value;
    return transport->operations.amo(transport, peer, nullptr, {operation, 0, 1, 0}, &target, {0, 8},
                                     kForProxy) == 0;
}

uint8_t pattern(int pe, size_t at, int round) {
    return static_cast<uint8_t>(at * 7 + static_cast<size_t>(pe * 31 + round));
}

// Puts of many sizes, at odd places, arrive as they are, and nowhere else.
bool puts(Pe& pe) {
    const size_t sizes[] = {1, 7, 8, 12, 13, 4096, 100'003, kLargeBytes};
    const size_t target = kHeapBytes / 2 + 3;
    bool ok = true;
    for (int round = 0; round < 8; round++) {
        size_t size = sizes[round];
        for (size_t i = 0; i < size; i++) pe.heap[5 + i] = pattern(own_pe, i, round);
        std::memset(pe.heap + target - 3, 0xee, size + 6);
        meet();
        ok &= pe.put(target, 5, size) && pe.quiet();
        meet();
        for (size_t i = 0; i < size; i++) ok &= pe.heap[target + i] == pattern(pe.peer, i, round);
        for (size_t i = 1; i <= 3; i++) ok &= pe.heap[target - i] == 0xee && pe.heap[target + size - 1 + i] == 0xee;
        meet();
    }
    return ok;
}

// Data are in place when their signal is: how often they were not.
int violations(Pe& pe, int rounds) {
    constexpr size_t kData = 4096, kSignal = 64, kSource = 1 << 20, kBytes = 1000;
    int wrong = 0;
    auto end = std::chrono::steady_clock::now() + kPatience;
    pe.word(kSignal) = 0;
    meet();
    for (uint64_t round = 1; round <= static_cast<uint64_t>(rounds); round++) {
        if (own_pe == 0) {
            std::memset(pe.heap + kSource, static_cast<int>(round & 0xff), kBytes);
            if (!pe.put_signal(kData, kSource, kBytes, kSignal, round) || !pe.quiet()) return -1;
        } else {
            while (pe.word(kSignal) != round && std::chrono::steady_clock::now() < end) usleep(1);
            std::atomic_thread_fence(std::memory_order_acquire);
            for (size_t i = 0; i < kBytes; i++) {
                if (pe.heap[kData + i] != (round & 0xff)) {
                    wrong++;
                    break;
                }
            }
        }
        meet();
    }
    return wrong;
}

bool signals(Pe& pe) {
    int wrong = violations(pe, 400);
    if (wrong != 0) std::printf("PE %d: %d signals came before their data\n", own_pe, wrong);
    return wrong == 0;
}

// Under settings that do not keep order, some signals come first.
bool overtaken(Pe& pe) {
    int wrong = violations(pe, 400);
    if (own_pe == 1) std::printf("%d of 400 signals came before their data\n", wrong);
    return wrong >= 0 && (own_pe == 0 || wrong > 0);
}

// Acknowledgements: values that grow, each sent before the last is known to have come. Whether one was seen to go back.
template <typename Send>
bool goes_back(Pe& pe, Send send) {
    constexpr uint64_t kTimes = 2000;
    constexpr size_t kWord = 512;
    pe.word(kWord) = 0;
    meet();
    bool back = false;
    if (own_pe == 0) {
        for (uint64_t value = 1; value <= kTimes; value++) {
            if (!send(kWord, value)) return true;
        }
        pe.quiet();
    } else {
        auto end = std::chrono::steady_clock::now() + kPatience;
        for (uint64_t last = 0; shared->arrived == 0 && std::chrono::steady_clock::now() < end;) {
            uint64_t seen = pe.word(kWord);
            back |= seen < last;
            last = seen;
        }
    }
    meet();
    return back || (own_pe == 1 && pe.word(kWord) != kTimes);
}

bool acknowledgements(Pe& pe) {
    return !goes_back(pe, [&](size_t at, uint64_t value) { return pe.atomic(NVSHMEMI_AMO_SIGNAL_SET, at, value); });
}

// As puts, which some transports carry as writes to memory with relaxed ordering, an older one may come last.
bool acknowledgements_as_puts(Pe& pe) {
    size_t from = 1 << 20;
    bool back = goes_back(pe, [&](size_t at, uint64_t value) {
        pe.word(from += sizeof(value)) = value;
        return pe.put(at, from, sizeof(value));
    });
    return own_pe == 0 || back;
}

bool adds(Pe& pe) {
    constexpr size_t kWord = 256;
    constexpr int kTimes = 1000;
    bool ok = true;
    pe.word(kWord) = 0;
    meet();
    for (int i = 0; i < kTimes; i++) ok &= pe.atomic(NVSHMEMI_AMO_SIGNAL_ADD, kWord, 3);
    ok &= pe.quiet();
    meet();
    return ok && pe.word(kWord) == 3ull * kTimes;
}

// The settings make an entry fail, or its peer goes: the plugin is told, and says so.
bool refused(Pe& pe) {
    bool ok = true;
    if (own_pe == 0) {
        bool failed = false;
        for (int i = 0; i < 50 && !failed; i++) failed = !pe.put(4096, 0, 64) || !pe.quiet();
        ok = failed;
    }
    meet();
    return ok;
}

const std::pair<const char*, std::function<bool(Pe&)>> kCases[] = {
    {"puts", puts}, {"signals", signals}, {"overtaken", overtaken}, {"adds", adds}, {"refused", refused},
    {"acknowledgements", acknowledgements}, {"acknowledgements-as-puts", acknowledgements_as_puts},
};

int run(const std::string& plugin, int argc, char** names) {
    Pe pe;
    setenv("RANK", std::to_string(own_pe).c_str(), 1);
    if (!pe.start(plugin)) {
        std::printf("FAILED start of %s\n", plugin.c_str());
        return 1;
    }
    int failed = 0;
    for (int i = 0; i < argc; i++) {
        for (auto& [name, test] : kCases) {
            if (std::strcmp(name, names[i]) != 0) continue;
            bool ok = test(pe);
            if (!ok) shared->failed++;
            meet();
            if (own_pe == 0) std::printf("%s %s\n", shared->failed == 0 ? "ok" : "FAILED", name);
            failed += shared->failed;
            meet();
            shared->failed = 0;
        }
    }
    std::fflush(stdout);
    meet();
    return failed == 0 ? 0 : 1;
}

}  // namespace

// The plugins ask where on PCI a device is. Where no device is, the name will do.
extern "C" char* realpath(const char* path, char* out) noexcept {
    char* result = out != nullptr ? out : static_cast<char*>(std::malloc(PATH_MAX));
    std::snprintf(result, PATH_MAX, "%s", path);
    return result;
}

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: transport_test PLUGIN CASE...\n");
        return 2;
    }
    shared = static_cast<Shared*>(
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pid_t children[kNumPes];
    for (int pe = 0; pe < kNumPes; pe++) {
        children[pe] = fork();
        if (children[pe] == 0) {
            own_pe = pe;
            std::exit(run(argv[1], argc - 2, argv + 2));
        }
    }
    int failed = 0;
    for (pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            std::printf("FAILED: a process ended with status 0x%x\n", status);
            failed = 1;
        }
    }
    return failed;
}
