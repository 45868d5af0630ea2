// Registered memory: what keys stand for.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace card {

struct Region {
    uint32_t key;
    uint32_t domain;      // protection domain
    uint64_t base;        // as entries name its first byte
    uint64_t num_bytes;
    unsigned access;      // IBV_ACCESS_*
    uint8_t* host;        // its first byte in this process; null for memory of a GPU, which `base` then addresses
    void* context;        // of that GPU

    bool covers(uint64_t address, uint64_t size) const {
        return size <= num_bytes && address >= base && address - base <= num_bytes - size;
    }

    // May be seen by the GPU only after gpu::settle(). False if memory of a GPU cannot be reached.
    bool write(uint64_t address, const void* from, uint64_t size) const;
    bool read(void* to, uint64_t address, uint64_t size) const;
};

class Memory {
  public:
    // Keys of different processes differ, so that one used at the wrong peer is found.
    explicit Memory(unsigned process);

    Region* add(uint32_t domain, uint64_t base, uint64_t num_bytes, unsigned access, uint8_t* host,
                void* context);
    void remove(uint32_t key);

    // The region that the key gives `access` to, all of that range, in that domain; null if it does not.
    const Region* find(uint32_t key, uint32_t domain, uint64_t address, uint64_t num_bytes, unsigned access) const;

  private:
    uint32_t next_;
    std::map<uint32_t, Region> regions_;
};

}  // namespace card
