#include "gpu.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

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

std::atomic<Handle> context{nullptr};
bool unsettled = false;

void check(int result, const char* call, uint64_t address, size_t num_bytes) {
    if (result != 0) say("%s of %zu bytes at 0x%lx returned CUDA error %d", call, num_bytes, address, result);
}

// The card's stream; only its thread copies.
Handle stream() {
    static thread_local Handle own = nullptr;
    if (own == nullptr) {
        check(driver().set_context(context), "cuCtxSetCurrent", 0, 0);
        check(driver().create_stream(&own, kNonBlocking), "cuStreamCreate", 0, 0);
    }
    return own;
}

}  // namespace

bool is_device(const void* address) {
    unsigned kind = 0;
    return driver().there &&
           driver().pointer_attribute(&kind, kMemoryType, reinterpret_cast<uint64_t>(address)) == 0 &&
           kind == kDeviceMemory;
}

void adopt_context() {
    Handle current = nullptr;
    if (context == nullptr && driver().there && driver().get_context(&current) == 0) context = current;
}

void to_device(uint64_t to, const void* from, size_t num_bytes) {
    check(driver().copy_in(to, from, num_bytes, stream()), "cuMemcpyHtoDAsync", to, num_bytes);
    unsettled = true;
}

void from_device(void* to, uint64_t from, size_t num_bytes) {
    Handle own = stream();
    check(driver().copy_out(to, from, num_bytes, own), "cuMemcpyDtoHAsync", from, num_bytes);
    check(driver().synchronize(own), "cuStreamSynchronize", from, num_bytes);
    unsettled = false;
}

void settle() {
    if (!unsettled) return;
    check(driver().synchronize(stream()), "cuStreamSynchronize", 0, 0);
    unsettled = false;
}

}  // namespace card::gpu
