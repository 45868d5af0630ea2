// What went through a queue.
#pragma once

#include <cstdint>

#include "work.h"

namespace card {

struct Counters {
    uint64_t doorbells = 0;  // those that were seen: of two in quick succession the card may see the second alone
    uint64_t entries = 0;
    uint64_t writes = 0, inline_writes = 0, reads = 0, atomics = 0, sends = 0, nops = 0;
    uint64_t bytes = 0;  // of writes and sends, inline ones too
    uint64_t completions = 0, errors = 0;

    void count(const Work& work) {
        entries++;
        switch (work.operation) {
            case Operation::kWrite: (work.is_inline ? inline_writes : writes)++; break;
            case Operation::kSend: sends++; break;
            case Operation::kRead: reads++; break;
            case Operation::kNop: nops++; break;
            default: atomics++;
        }
        if (work.operation == Operation::kWrite || work.operation == Operation::kSend) bytes += work.num_bytes();
    }

    void add(const Counters& other) {
        doorbells += other.doorbells, entries += other.entries, writes += other.writes;
        inline_writes += other.inline_writes, reads += other.reads, atomics += other.atomics;
        sends += other.sends, nops += other.nops, bytes += other.bytes;
        completions += other.completions, errors += other.errors;
    }
};

}  // namespace card
