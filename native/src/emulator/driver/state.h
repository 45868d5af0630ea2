// What the driver keeps: devices and their primary contexts, allocations, streams, events, graphs, modules.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda.h"
#include "grid.h"
#include "races.h"

struct Context {
    CUdevice device;
    int ordinal;  // of the machine, whatever CUDA_VISIBLE_DEVICES leaves
    std::mutex mutex;
    bool failed = false;  // a kernel failed: nothing works any more
    std::vector<struct Stream*> streams;
    Stream* default_stream = nullptr;  // made when it is asked for
};

namespace deepep::emulator {

constexpr int kReservedSharedBytes = 1 << 10;  // of each block

std::vector<Context*>& contexts();
Context* current_context();
int num_sms();
int block_shared_bytes();  // at most; an SM has those of one such block

// 0: GPUs have no fabric handles; 1: they have, but no IMEX channel is there; 2: processes of this host may use them.
int fabric();

bool is_host_memory(CUdeviceptr address);  // the system's, pinned or not

// CUDA_ERROR_LAUNCH_FAILED once a kernel of the context has failed.
CUresult status_of(const Context* context);

// For calls that captures forbid the thread that began them: these become invalid.
CUresult forbidden_in_captures();

// The status with which a test wants this call of a function to fail: deepepEmulatorFail.
CUresult asked_to_fail(const char* function);

#define MAY_FAIL \
    if (auto asked = asked_to_fail(__func__)) return asked

// A launch's own copy of a kernel's arguments.
struct Arguments {
    std::vector<std::unique_ptr<uint8_t[]>> values;
    std::vector<void*> pointers;

    Arguments(const Kernel* kernel, void* const* given);
};

struct Work {
    std::function<bool()> run;
    std::function<Work()> for_launch = {};  // in a graph: what a launch does instead
    SharedClock after = {};  // what the host knew to be over, with the detection of races
};

void enqueue(Stream* stream, Work work);
Stream* stream_of(Stream* handle);

}  // namespace deepep::emulator
