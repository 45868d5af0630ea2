#include "memory.h"

#include <cstring>

#include "gpu.h"

namespace card {

namespace {

constexpr uint32_t kFirstKeyOfProcess = 1u << 20;

// Whoever polls a word never sees a part of it.
void store(uint8_t* to, const void* from, uint64_t size) {
    if (size == sizeof(uint64_t) && reinterpret_cast<uintptr_t>(to) % sizeof(uint64_t) == 0) {
        uint64_t word;
        std::memcpy(&word, from, sizeof(word));
        __atomic_store_n(reinterpret_cast<uint64_t*>(to), word, __ATOMIC_RELEASE);
    } else {
        std::memcpy(to, from, size);
        __atomic_thread_fence(__ATOMIC_RELEASE);
    }
}

}  // namespace

bool Region::write(uint64_t address, const void* from, uint64_t size) const {
    if (host == nullptr) return gpu::to_device(context, address, from, size);
    store(host + (address - base), from, size);
    return true;
}

bool Region::read(void* to, uint64_t address, uint64_t size) const {
    if (host == nullptr) return gpu::from_device(context, to, address, size);
    std::memcpy(to, host + (address - base), size);
    return true;
}

Memory::Memory(unsigned process) : next_(process * kFirstKeyOfProcess + 0x100) {}

Region* Memory::add(uint32_t domain, uint64_t base, uint64_t num_bytes, unsigned access, uint8_t* host,
                    void* context) {
    // The lower byte of a key is the user's own in mlx5; here it tells a key from its neighbours.
    next_ += 0x101;
    return &(regions_[next_] = Region{next_, domain, base, num_bytes, access, host, context});
}

void Memory::remove(uint32_t key) { regions_.erase(key); }

const Region* Memory::find(uint32_t key, uint32_t domain, uint64_t address, uint64_t num_bytes,
                           unsigned access) const {
    auto found = regions_.find(key);
    if (found == regions_.end()) return nullptr;
    const Region& region = found->second;
    bool allowed = region.domain == domain && (region.access & access) == access && region.covers(address, num_bytes);
    return allowed ? &region : nullptr;
}

}  // namespace card
