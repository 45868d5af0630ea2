// Where the processes of one NVSHMEM meet: memory that PE 0 makes, and whose descriptor is the unique id.
#pragma once

#include <atomic>

#include "cuda.h"

namespace deepep::emulator {

constexpr int kMaxPes = 256;

struct Meeting {
    std::atomic<uint32_t> arrived, round;
    CUipcHandle memory[kMaxPes];  // what each PE has just allocated

    // Waits for all PEs.
    void barrier(int num_pes);
};

// A descriptor as other processes of this user find it.
struct MeetingId {
    int pid, fd;
};

// Makes one; 0 if that fails.
Meeting* make_meeting(MeetingId& id);
Meeting* join_meeting(const MeetingId& id);
void leave_meeting(Meeting* meeting);

}  // namespace deepep::emulator
