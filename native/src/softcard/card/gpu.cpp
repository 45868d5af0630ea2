#include "gpu.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <map>

#include "settings.h"

namespace card::gpu {

namespace {

using Handle = void*;

constexpr int kMemoryType = 2;   // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kDeviceMemory = 2;  // CU_MEMORYTYPE_DEVICE
constexpr unsigned kNonBlocking = 1;

// The part of the driver's interface that the card uses. Looked up only where the process has loaded the driver.
struct Driver {
    int (*pointer_attribute)(void*, int, uint64_t) = nullptr;
    int (*get_context)(Handle*) = nullptr;
    int (*set_context)(Handle) = nullptr;
    int (*create_stream)(Handle*, unsigned) = nullptr;
    int (*synchronize)(Handle) = nullptr;
    int (*copy_in)(uint64_t, const void*, size_t, Handle) = nullptr;
    int (*copy_out)(void*, uint64_t, size_t, Handle) = nullptr;
    bool there = false;

    Driver() {
        void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr) return;
        there = find(library, "cuPointerGetAttribute", pointer_attribute) &&
                find(library, "cuCtxGetCurrent", get_context) && find(library, "cuCtxSetCurrent", set_context) &&
                find(library, "cuStreamCreate", create_stream) && find(library, "cuStreamSynchronize", synchronize) &&
                find(library, "cuMemcpyHtoDAsync_v2", copy_in) && find(library, "cuMemcpyDtoHAsync_v2", copy_out);
    }

    template <typename Function>
    static bool find(void* library, const char* name, Function& function) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        return function != nullptr;
    }
};

const Driver& driver() {
    static const Driver none;
    static std::atomic<const Driver*> found{nullptr};
    const Driver* known = found.load();
    if (known != nullptr) return *known;
    auto* tried = new Driver();
    if (tried->there && found.compare_exchange_strong(known, tried)) return *tried;
    delete tried;
    return known != nullptr ? *known : none;
}

bool check(int result, const char* call, uint64_t address, size_t num_bytes) {
    if (result != 0) say("%s of %zu bytes at 0x%lx returned CUDA error %d", call, num_bytes, address, result);
    return result == 0;
}

// Of a context; only the card's thread copies.
struct Stream {
    Handle own = nullptr;
    bool unsettled = false;
};

thread_local std::map<Handle, Stream> streams;

// With its context current. Null if the driver refuses.
Stream* stream_of(Handle context) {
    if (!check(driver().set_context(context), "cuCtxSetCurrent", 0, 0)) return nullptr;
    Stream& stream = streams[context];
    if (stream.own != nullptr) return &stream;
    return check(driver().create_stream(&stream.own, kNonBlocking), "cuStreamCreate", 0, 0) ? &stream : nullptr;
}

}  // namespace

bool is_device(const void* address) {
    unsigned kind = 0;
    return driver().there &&
           driver().pointer_attribute(&kind, kMemoryType, reinterpret_cast<uint64_t>(address)) == 0 &&
           kind == kDeviceMemory;
}

void* current_context() {
    Handle current = nullptr;
    if (driver().there) driver().get_context(&current);
    return current;
}

bool to_device(void* context, uint64_t to, const void* from, size_t num_bytes) {
    Stream* stream = stream_of(context);
    if (stream == nullptr) return false;
    stream->unsettled = true;
    return check(driver().copy_in(to, from, num_bytes, stream->own), "cuMemcpyHtoDAsync", to, num_bytes);
}

bool from_device(void* context, void* to, uint64_t from, size_t num_bytes) {
    Stream* stream = stream_of(context);
    if (stream == nullptr) return false;
    stream->unsettled = false;
    return check(driver().copy_out(to, from, num_bytes, stream->own), "cuMemcpyDtoHAsync", from, num_bytes) &&
           check(driver().synchronize(stream->own), "cuStreamSynchronize", from, num_bytes);
}

void settle() {
    for (auto& [context, stream] : streams) {
        if (!stream.unsettled) continue;
        check(driver().set_context(context), "cuCtxSetCurrent", 0, 0);
        check(driver().synchronize(stream.own), "cuStreamSynchronize", 0, 0);
        stream.unsettled = false;
    }
}

}  // namespace card::gpu
