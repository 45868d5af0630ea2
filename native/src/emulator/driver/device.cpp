// Devices, primary contexts, error names.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "state.h"

namespace deepep::emulator {

namespace {

int number(const char* variable, int otherwise) {
    const char* given = getenv(variable);
    return given && *given ? atoi(given) : otherwise;
}

thread_local Context* current = nullptr;

std::vector<Context*>* make_contexts() {
    auto all = new std::vector<Context*>;
    int num_gpus = number("DEEPEP_EMULATOR_GPUS", 8);
    const char* visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible) {
        for (int i = 0; i < num_gpus; ++i) all->push_back(new Context{.device = i, .ordinal = i});
        return all;
    }
    std::istringstream list(visible);
    for (std::string item; std::getline(list, item, ',');) {
        int ordinal = atoi(item.c_str());
        if (item.empty() || ordinal < 0 || ordinal >= num_gpus) break;  // as the driver: what follows does not count
        all->push_back(new Context{.device = static_cast<int>(all->size()), .ordinal = ordinal});
    }
    return all;
}

}  // namespace

std::vector<Context*>& contexts() {
    static auto all = make_contexts();
    return *all;
}

Context* current_context() { return current; }

int num_sms() {
    static int num = number("DEEPEP_EMULATOR_SMS", 24);
    return num;
}

int block_shared_bytes() {
    static int kib = number("DEEPEP_EMULATOR_SHARED_KIB", 227);
    return kib << 10;
}

int fabric() {
    static int kind = number("DEEPEP_EMULATOR_FABRIC", 0);
    return kind;
}

CUresult status_of(const Context* context) { return context->failed ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS; }

}  // namespace deepep::emulator

using namespace deepep::emulator;

namespace {

Context* context_of(CUdevice device) {
    return device >= 0 && device < static_cast<int>(contexts().size()) ? contexts()[device] : nullptr;
}

struct Name {
    int code;
    const char *name, *text;
};

#define DEEPEP_STATUS(code, text) {code, #code, text}
constexpr Name kNames[] = {
    DEEPEP_STATUS(CUDA_SUCCESS, "no error"),
    DEEPEP_STATUS(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    DEEPEP_STATUS(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    DEEPEP_STATUS(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    DEEPEP_STATUS(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    DEEPEP_STATUS(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    DEEPEP_STATUS(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    DEEPEP_STATUS(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    DEEPEP_STATUS(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    DEEPEP_STATUS(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    DEEPEP_STATUS(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    DEEPEP_STATUS(CUDA_ERROR_NOT_READY, "device not ready"),
    DEEPEP_STATUS(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    DEEPEP_STATUS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    DEEPEP_STATUS(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    DEEPEP_STATUS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    DEEPEP_STATUS(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    DEEPEP_STATUS(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    DEEPEP_STATUS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    DEEPEP_STATUS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    DEEPEP_STATUS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    DEEPEP_STATUS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    DEEPEP_STATUS(CUDA_ERROR_CAPTURED_EVENT, "event was last recorded in a capturing stream"),
};
#undef DEEPEP_STATUS

std::atomic<bool> is_started = false;

// CUdevice_attribute
int attribute(int which) {
    switch (which) {
        case 1:
            return 1024;  // threads of a block
        case 8:
            return 48 << 10;  // shared memory of a block
        case 10:
            return 32;  // threads of a warp
        case 16:
            return num_sms();
        case 38:
            return 50 << 20;  // L2
        case 39:
            return 2048;  // threads of an SM
        case 41:
            return 1;  // one address space
        case 75:
            return 9;
        case 76:
            return 0;
        case 81:
            return block_shared_bytes() + kReservedSharedBytes;
        case 95:
            return 1;  // cooperative launch
        case 97:
            return block_shared_bytes();
        case 103:
            return 1;  // export as a file descriptor
        case 128:
            return fabric() > 0;  // export as a fabric handle
        default:
            return 0;
    }
}

}  // namespace

EMULATED cuInit(unsigned) {
    is_started = true;
    return contexts().empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EMULATED cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }

EMULATED cuDeviceGetCount(int* count) {
    if (!is_started) return CUDA_ERROR_NOT_INITIALIZED;
    return *count = static_cast<int>(contexts().size()), CUDA_SUCCESS;
}

EMULATED cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }

EMULATED cuDeviceGetName(char* name, int length, CUdevice) {
    snprintf(name, length, "DeepEP emulator");
    return CUDA_SUCCESS;
}

EMULATED cuDeviceGetAttribute(int* value, int which, CUdevice) { return *value = attribute(which), CUDA_SUCCESS; }

EMULATED cuDeviceTotalMem_v2(size_t* bytes, CUdevice) { return *bytes = 64ull << 30, CUDA_SUCCESS; }

EMULATED cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
    snprintf(id, length, "0000:%02x:00.0", context_of(device)->ordinal + 1);
    return CUDA_SUCCESS;
}

EMULATED cuDeviceGetUuid_v2(uint8_t* uuid, CUdevice device) {
    memset(uuid, 0xde, 16);
    uuid[15] = static_cast<uint8_t>(context_of(device)->ordinal);
    return CUDA_SUCCESS;
}

EMULATED cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) { return *can = 1, CUDA_SUCCESS; }

EMULATED cuCtxEnablePeerAccess(Context*, unsigned) { return CUDA_SUCCESS; }

EMULATED cuDevicePrimaryCtxRetain(Context** context, CUdevice device) {
    MAY_FAIL;
    *context = context_of(device);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EMULATED cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }

EMULATED cuCtxGetCurrent(Context** context) { return *context = current, CUDA_SUCCESS; }

EMULATED cuCtxSetCurrent(Context* context) { return current = context, CUDA_SUCCESS; }

EMULATED cuCtxGetDevice(CUdevice* device) {
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    return *device = current->device, CUDA_SUCCESS;
}

EMULATED cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, CUDA_SUCCESS; }

EMULATED cuGetErrorName(int code, const char** name) {
    for (auto& known : kNames)
        if (known.code == code) return *name = known.name, CUDA_SUCCESS;
    return *name = nullptr, CUDA_ERROR_INVALID_VALUE;
}

EMULATED cuGetErrorString(int code, const char** text) {
    for (auto& known : kNames)
        if (known.code == code) return *text = known.text, CUDA_SUCCESS;
    return *text = nullptr, CUDA_ERROR_INVALID_VALUE;
}
