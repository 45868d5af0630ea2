#include "network.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

namespace deepep::emulator {

namespace {

[[noreturn]] void fail(const char* what, uint64_t address, int pe) {
    fprintf(stderr, "[nvshmem emulator] %s %llx for PE %d is not in symmetric memory\n", what,
            static_cast<unsigned long long>(address), pe);
    abort();
}

}  // namespace

Network::Network() {
    const char* seed = getenv("DEEPEP_EMULATOR_SEED");
    random_.seed(seed ? static_cast<uint32_t>(atoi(seed)) : 1u);
    std::thread([this] { carry(); }).detach();
}

void Network::add(Symmetric memory) {
    std::lock_guard lock(mutex_);
    uint64_t own = memory.own;
    memory_[own] = std::move(memory);
}

Symmetric Network::remove(uint64_t own) {
    std::lock_guard lock(mutex_);
    auto it = memory_.find(own);
    if (it == memory_.end()) return {};
    Symmetric removed = std::move(it->second);
    memory_.erase(it);
    return removed;
}

std::vector<Symmetric> Network::remove_all() {
    std::lock_guard lock(mutex_);
    std::vector<Symmetric> all;
    for (auto& [own, memory] : memory_) all.push_back(std::move(memory));
    memory_.clear();
    return all;
}

uint64_t Network::address(uint64_t own, int pe) {
    std::lock_guard lock(mutex_);
    auto it = memory_.upper_bound(own);
    if (it == memory_.begin()) return 0;
    const Symmetric& memory = std::prev(it)->second;
    return own - memory.own < memory.num_bytes ? memory.of_pe.at(pe) + (own - memory.own) : 0;
}

void Network::post(int block, int pe, void* target, const void* source, size_t num_bytes, uint64_t* signal,
                   uint64_t value) {
    Put put = {0, reinterpret_cast<uint64_t>(source), num_bytes, 0, value};
    if (num_bytes != 0) {
        put.target = address(reinterpret_cast<uint64_t>(target), pe);
        if (!put.target) fail("target", reinterpret_cast<uint64_t>(target), pe);
        if (!address(put.source, pe)) fail("source", put.source, pe);  // which cards could not read
    }
    if (signal) {
        put.signal = address(reinterpret_cast<uint64_t>(signal), pe);
        if (!put.signal) fail("signal", reinterpret_cast<uint64_t>(signal), pe);
    }
    std::lock_guard lock(mutex_);
    queues_[{block, pe}].push_back(put);
    ++num_pending_;
    posted_.notify_one();
}

void Network::quiet() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return num_pending_ == 0; });
}

void Network::carry() {
    std::unique_lock lock(mutex_);
    while (true) {
        posted_.wait(lock, [this] { return !queues_.empty(); });
        auto queue = std::next(queues_.begin(), random_() % queues_.size());
        Put put = queue->second.front();
        queue->second.pop_front();
        if (queue->second.empty()) queues_.erase(queue);
        lock.unlock();
        if (put.num_bytes != 0)
            memcpy(reinterpret_cast<void*>(put.target), reinterpret_cast<const void*>(put.source), put.num_bytes);
        // release; pairs with the acquire of whoever waits for the signal.
        if (put.signal) __atomic_store_n(reinterpret_cast<uint64_t*>(put.signal), put.value, __ATOMIC_RELEASE);
        lock.lock();
        if (--num_pending_ == 0) arrived_.notify_all();
    }
}

}  // namespace deepep::emulator
