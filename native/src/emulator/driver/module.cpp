// Modules and launches. A module is a shared library that the device code was compiled into; each context loads its own
// copy, so that variables are its own too.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stream.h"

using namespace deepep::emulator;

struct Module {
    void* library;
    int fd;  // open as long as the library is: the linker knows libraries by their paths, and this one has its number
};

struct Function {
    std::string name;
    const Kernel* kernel;
    int max_dynamic_shared_bytes = 48 << 10;
};

namespace {

constexpr int kMaxThreads = 1024, kSmThreads = 2048, kMaxBlocksPerSm = 32;
constexpr int kCooperative = 2, kProgrammaticSerialization = 6;

// The driver is not told how long an image is; an ELF file says so at its beginning.
size_t num_bytes(const Elf64_Ehdr& elf) { return elf.e_shoff + static_cast<size_t>(elf.e_shentsize) * elf.e_shnum; }

uint32_t seed() {
    static std::atomic<uint32_t> next = [] {
        const char* given = getenv("DEEPEP_EMULATOR_SEED");
        return given ? static_cast<uint32_t>(atoi(given)) : 1u;
    }();
    return next++;
}

int blocks_per_sm(uint32_t num_threads, size_t shared_bytes) {
    int by_threads = kSmThreads / static_cast<int>((num_threads + 31) / 32 * 32);
    int shared = block_shared_bytes() + kReservedSharedBytes;
    int by_shared = shared / static_cast<int>(shared_bytes + kReservedSharedBytes);
    return std::min({by_threads, by_shared, kMaxBlocksPerSm});
}

}  // namespace

namespace deepep::emulator {

Arguments::Arguments(const Kernel* kernel, void* const* given) {
    for (uint32_t i = 0; i < kernel->num_params; ++i) {
        values.emplace_back(new uint8_t[kernel->param_bytes[i] + 64]);
        uint8_t* aligned = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(values.back().get()) + 63) & ~63ull);
        memcpy(aligned, given[i], kernel->param_bytes[i]);
        pointers.push_back(aligned);
    }
}

}  // namespace deepep::emulator

EMULATED cuModuleLoadDataEx(Module** module, const void* image, unsigned, void*, void*) {
    MAY_FAIL;
    Elf64_Ehdr elf;
    memcpy(&elf, image, sizeof(elf));
    if (memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    int fd = memfd_create("deepep-emulator-module", MFD_CLOEXEC);
    if (write(fd, image, num_bytes(elf)) != static_cast<ssize_t>(num_bytes(elf))) return CUDA_ERROR_INVALID_IMAGE;
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "[cuda emulator] %s\n", dlerror());
        close(fd);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return *module = new Module{library, fd}, CUDA_SUCCESS;
}

EMULATED cuModuleUnload(Module* module) {
    dlclose(module->library);
    close(module->fd);
    delete module;
    return CUDA_SUCCESS;
}

EMULATED cuModuleGetFunction(Function** function, Module* module, const char* name) {
    auto kernel = static_cast<const Kernel*>(dlsym(module->library, (std::string("deepep_emulated_") + name).c_str()));
    if (!kernel) return CUDA_ERROR_NOT_FOUND;
    return *function = new Function{name, kernel}, CUDA_SUCCESS;
}

EMULATED cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* num_bytes, Module* module, const char* name) {
    void* variable = dlsym(module->library, name);
    if (!variable) return CUDA_ERROR_NOT_FOUND;
    if (num_bytes) *num_bytes = sizeof(uint64_t);
    return *address = reinterpret_cast<CUdeviceptr>(variable), CUDA_SUCCESS;
}

EMULATED cuFuncLoad(Function*) { return CUDA_SUCCESS; }

EMULATED cuFuncGetAttribute(int* value, int which, Function* function) {
    constexpr int kThreads = 0, kRegisters = 4, kDynamicShared = 8;
    *value = which == kThreads         ? kMaxThreads
             : which == kRegisters     ? 64
             : which == kDynamicShared ? function->max_dynamic_shared_bytes
                                       : 0;
    return CUDA_SUCCESS;
}

EMULATED cuFuncSetAttribute(Function* function, int which, int value) {
    constexpr int kDynamicShared = 8;
    if (which != kDynamicShared) return CUDA_SUCCESS;
    if (value < 0 || value > block_shared_bytes()) return CUDA_ERROR_INVALID_VALUE;
    return function->max_dynamic_shared_bytes = value, CUDA_SUCCESS;
}

EMULATED cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, Function*, int num_threads, size_t shared_bytes) {
    return *num_blocks = blocks_per_sm(num_threads, shared_bytes), CUDA_SUCCESS;
}

EMULATED cuLaunchKernelEx(const CUlaunchConfig* config, Function* function, void** params, void**) {
    MAY_FAIL;
    Stream* stream = stream_of(config->stream);
    if (auto failed = status_of(stream->context)) return failed;
    Dim grid = {config->grid[0], config->grid[1], config->grid[2]},
        block = {config->block[0], config->block[1], config->block[2]};
    uint32_t num_threads = block.x * block.y * block.z;
    if (num_threads == 0 || num_threads > kMaxThreads || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (config->shared_bytes > static_cast<uint32_t>(function->max_dynamic_shared_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->num_attributes; ++i)
        if (config->attributes[i].id == kCooperative && config->attributes[i].value &&
            grid.x * grid.y * grid.z >
                static_cast<uint32_t>(blocks_per_sm(num_threads, config->shared_bytes) * num_sms()))
            return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    bool early = std::any_of(config->attributes, config->attributes + config->num_attributes, [](auto& attribute) {
        return attribute.id == kProgrammaticSerialization && attribute.value;
    });
    auto arguments = std::make_shared<Arguments>(function->kernel, params);
    enqueue(stream, {[=, shared_bytes = config->shared_bytes, gpu = stream->context->ordinal] {
        return run_grid({function->name.c_str(), function->kernel, arguments->pointers.data(), grid,
                         block, shared_bytes, seed(), gpu, early});
    }});
    return CUDA_SUCCESS;
}
