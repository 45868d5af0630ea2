// Calls of the driver that fail because a test has asked for it.
#include <string>

#include "state.h"

namespace {

struct Asked {
    std::string function;
    int calls_before = -1;
    CUresult status;
};

thread_local Asked asked;

}  // namespace

namespace deepep::emulator {

CUresult asked_to_fail(const char* function) {
    if (asked.calls_before < 0 || asked.function != function) return CUDA_SUCCESS;
    return asked.calls_before-- == 0 ? asked.status : CUDA_SUCCESS;
}

}  // namespace deepep::emulator

// After so many calls of a function (one that has MAY_FAIL), the next on this thread fails.
EMULATED deepepEmulatorFail(const char* function, int calls_before, CUresult status) {
    asked = {function, calls_before, status};
    return CUDA_SUCCESS;
}
