// Device memory: shared memory of the system, so that other processes can map it. Every GPU reaches every address.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "state.h"

using namespace deepep::emulator;

namespace {

constexpr size_t kPage = 4096, kGranularity = 2 << 20, kPoisonedBytes = 16 << 20;
constexpr uint8_t kPoison = 0xa7;
constexpr int kMemoryType = 2, kDeviceOrdinal = 9, kIpcCapable = 10, kRangeStart = 11, kRangeSize = 12;

enum class Kind { kPlain, kVirtual, kImported, kHost };

struct Allocation {
    size_t num_bytes;
    Kind kind;
    CUdevice device;
    int fd;         // of the memory behind it, or -1
    size_t offset;  // there
    uint64_t reachable_by = 0;  // devices that were given access
};

// CUmemAccessDesc.
struct AccessDescription {
    int type, device, flags;
};

// Memory that cuMemCreate made or a descriptor brought.
struct Physical {
    int fd;
    size_t num_bytes;
    CUdevice device;
};

std::mutex mutex;
auto& allocations = *new std::map<CUdeviceptr, Allocation>;

size_t round_up(size_t v, size_t unit) { return (v + unit - 1) / unit * unit; }

// Plain memory comes from one file, of which a range is one allocation.
struct Pool {
    static constexpr size_t kBytes = 256ull << 30;
    int fd = -1;
    CUdeviceptr base = 0;
    std::map<size_t, size_t> free;  // offset, bytes

    void open() {
        if (fd >= 0) return;
        fd = memfd_create("deepep-emulator", MFD_CLOEXEC);
        if (ftruncate(fd, kBytes) != 0) perror("[cuda emulator] ftruncate");
        base = reinterpret_cast<CUdeviceptr>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0));
        free[0] = kBytes;
        races::watch(base, kBytes, fd);
    }

    // A page between allocations stays free, so that neighbours do not hide one another's faults.
    bool take(size_t num_bytes, size_t& offset) {
        open();
        size_t needed = round_up(num_bytes, kPage) + kPage;
        for (auto it = free.begin(); it != free.end(); ++it)
            if (it->second >= needed) {
                offset = it->first;
                size_t left = it->second - needed;
                free.erase(it);
                if (left) free[offset + needed] = left;
                mprotect(reinterpret_cast<void*>(base + offset + needed - kPage), kPage, PROT_NONE);
                return true;
            }
        return false;
    }

    void give(size_t offset, size_t num_bytes) {
        size_t length = round_up(num_bytes, kPage) + kPage;
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
        mprotect(reinterpret_cast<void*>(base + offset + length - kPage), kPage, PROT_READ | PROT_WRITE);
        auto next = free.lower_bound(offset);
        if (next != free.end() && next->first == offset + length) {
            length += next->second;
            next = free.erase(next);
        }
        if (next != free.begin() && std::prev(next)->first + std::prev(next)->second == offset)
            std::prev(next)->second += length;
        else
            free[offset] = length;
    }
};

auto& pool = *new Pool;

std::map<CUdeviceptr, Allocation>::iterator find(CUdeviceptr address) {
    auto it = allocations.upper_bound(address);
    if (it == allocations.begin()) return allocations.end();
    --it;
    return address < it->first + it->second.num_bytes ? it : allocations.end();
}

CUdevice current_device() { return current_context() ? current_context()->device : 0; }

struct Exported {
    int pid, fd;
    uint64_t offset, num_bytes;

    auto operator<=>(const Exported&) const = default;
};

// A descriptor of another process, or -1.
int open_fd(int pid, int fd) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

// What stands in the 64 bytes of a fabric handle, which other processes of this host understand.
struct FabricHandle {
    int pid, fd;
    uint8_t reserved[56];
};
static_assert(sizeof(FabricHandle) == 64);

constexpr int kFabricHandle = 8;

// What contexts have open of other processes, and where.
auto& opened = *new std::map<std::pair<const void*, Exported>, CUdeviceptr>;

// Maps memory of another process; with the mutex held.
CUresult map(CUdeviceptr* address, const Exported& exported) {
    int fd = open_fd(exported.pid, exported.fd);
    if (fd < 0) return CUDA_ERROR_INVALID_HANDLE;
    void* at = mmap(nullptr, exported.num_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, exported.offset);
    close(fd);
    if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reinterpret_cast<CUdeviceptr>(at);
    allocations[*address] = {exported.num_bytes, Kind::kImported, current_device(), -1, 0};
    return CUDA_SUCCESS;
}

}  // namespace

bool deepep::emulator::is_host_memory(CUdeviceptr address) {
    std::lock_guard lock(mutex);
    auto it = find(address);
    return it == allocations.end() || it->second.kind == Kind::kHost;
}

EMULATED cuMemAlloc_v2(CUdeviceptr* address, size_t num_bytes) {
    MAY_FAIL;
    if (auto forbidden = forbidden_in_captures()) return forbidden;
    if (num_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(mutex);
    size_t offset;
    if (num_bytes > 64ull << 30 || !pool.take(num_bytes, offset)) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = pool.base + offset;
    allocations[*address] = {num_bytes, Kind::kPlain, current_device(), pool.fd, offset};
    if (num_bytes <= kPoisonedBytes) memset(reinterpret_cast<void*>(*address), kPoison, num_bytes);
    races::forget(*address, num_bytes);
    return CUDA_SUCCESS;
}

EMULATED cuMemFree_v2(CUdeviceptr address) {
    if (auto forbidden = forbidden_in_captures()) return forbidden;
    if (!address) return CUDA_SUCCESS;
    std::lock_guard lock(mutex);
    auto it = allocations.find(address);
    if (it == allocations.end() || it->second.kind != Kind::kPlain) return CUDA_ERROR_INVALID_VALUE;
    pool.give(it->second.offset, it->second.num_bytes);
    allocations.erase(it);
    return CUDA_SUCCESS;
}

EMULATED cuMemGetInfo_v2(size_t* free, size_t* total) {
    std::lock_guard lock(mutex);
    size_t used = 0;
    for (auto& [_, a] : allocations)
        if (a.device == current_device() && a.kind != Kind::kHost) used += a.num_bytes;
    return *total = 64ull << 30, *free = *total - used, CUDA_SUCCESS;
}

EMULATED cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t num_bytes) {
    MAY_FAIL;
    memcpy(reinterpret_cast<void*>(to), from, num_bytes);
    races::forget(to, num_bytes);
    return CUDA_SUCCESS;
}

EMULATED cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t num_bytes) {
    MAY_FAIL;
    memcpy(to, reinterpret_cast<void*>(from), num_bytes);
    return CUDA_SUCCESS;
}

EMULATED cuMemsetD8_v2(CUdeviceptr to, uint8_t value, size_t num_bytes) {
    MAY_FAIL;
    memset(reinterpret_cast<void*>(to), value, num_bytes);
    races::forget(to, num_bytes);
    return CUDA_SUCCESS;
}

EMULATED cuMemHostAlloc(void** address, size_t num_bytes, unsigned) {
    MAY_FAIL;
    if (auto forbidden = forbidden_in_captures()) return forbidden;
    void* memory =
        mmap(nullptr, round_up(num_bytes, kPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    std::lock_guard lock(mutex);
    allocations[reinterpret_cast<CUdeviceptr>(memory)] = {num_bytes, Kind::kHost, current_device(), -1, 0};
    races::watch_host(reinterpret_cast<uint64_t>(memory), num_bytes);
    return *address = memory, CUDA_SUCCESS;
}

EMULATED cuMemFreeHost(void* address) {
    if (auto forbidden = forbidden_in_captures()) return forbidden;
    std::lock_guard lock(mutex);
    auto it = allocations.find(reinterpret_cast<CUdeviceptr>(address));
    if (it == allocations.end() || it->second.kind != Kind::kHost) return CUDA_ERROR_INVALID_VALUE;
    races::unwatch(it->first);
    munmap(address, round_up(it->second.num_bytes, kPage));
    allocations.erase(it);
    return CUDA_SUCCESS;
}

EMULATED cuMemHostRegister_v2(void* address, size_t num_bytes, unsigned) {
    MAY_FAIL;
    std::lock_guard lock(mutex);
    if (find(reinterpret_cast<CUdeviceptr>(address)) != allocations.end()) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    allocations[reinterpret_cast<CUdeviceptr>(address)] = {num_bytes, Kind::kHost, current_device(), -1, 0};
    races::watch_host(reinterpret_cast<uint64_t>(address), num_bytes);
    return CUDA_SUCCESS;
}

EMULATED cuMemHostUnregister(void* address) {
    std::lock_guard lock(mutex);
    races::unwatch(reinterpret_cast<uint64_t>(address));
    return allocations.erase(reinterpret_cast<CUdeviceptr>(address)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMULATED cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned) {
    return *device = reinterpret_cast<CUdeviceptr>(host), CUDA_SUCCESS;
}

EMULATED cuPointerGetAttribute(void* value, int which, CUdeviceptr address) {
    std::lock_guard lock(mutex);
    auto it = find(address);
    if (it == allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    const Allocation& a = it->second;
    switch (which) {
        case kMemoryType:
            *static_cast<int*>(value) = a.kind == Kind::kHost ? 1 : 2;
            break;
        case kDeviceOrdinal:
            *static_cast<int*>(value) = a.device;
            break;
        case kIpcCapable:
            *static_cast<uint8_t*>(value) = a.kind == Kind::kPlain;
            break;
        case kRangeStart:
            *static_cast<CUdeviceptr*>(value) = it->first;
            break;
        case kRangeSize:
            *static_cast<size_t*>(value) = a.num_bytes;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

EMULATED cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* num_bytes, CUdeviceptr address) {
    std::lock_guard lock(mutex);
    auto it = find(address);
    if (it == allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    if (num_bytes) *num_bytes = it->second.num_bytes;
    return *base = it->first, CUDA_SUCCESS;
}

EMULATED cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*, int) {
    return *granularity = kGranularity, CUDA_SUCCESS;
}

EMULATED cuMemCreate(Physical** handle, size_t num_bytes, const CUmemAllocationProp* properties, uint64_t) {
    MAY_FAIL;
    if (auto forbidden = forbidden_in_captures()) return forbidden;
    if (properties->handle_types & ~(1 | kFabricHandle)) return CUDA_ERROR_NOT_SUPPORTED;
    if (properties->handle_types & kFabricHandle && fabric() < 2) return CUDA_ERROR_NOT_PERMITTED;
    int fd = memfd_create("deepep-emulator", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, num_bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    return *handle = new Physical{fd, num_bytes, properties->location.id}, CUDA_SUCCESS;
}

EMULATED cuMemRelease(Physical* handle) {
    close(handle->fd);
    delete handle;
    return CUDA_SUCCESS;
}

EMULATED cuMemExportToShareableHandle(void* out, Physical* handle, int type, uint64_t) {
    MAY_FAIL;
    if (type == kFabricHandle) {
        FabricHandle exported = {getpid(), handle->fd};
        return memcpy(out, &exported, sizeof(exported)), CUDA_SUCCESS;
    }
    int fd = fcntl(handle->fd, F_DUPFD_CLOEXEC, 0);
    return *static_cast<int*>(out) = fd, fd < 0 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

EMULATED cuMemImportFromShareableHandle(Physical** handle, void* shared, int type) {
    MAY_FAIL;
    if (type == kFabricHandle && fabric() < 2) return CUDA_ERROR_NOT_PERMITTED;
    int fd = type == kFabricHandle ? open_fd(static_cast<const FabricHandle*>(shared)->pid,
                                             static_cast<const FabricHandle*>(shared)->fd)
                                   : fcntl(static_cast<int>(reinterpret_cast<intptr_t>(shared)), F_DUPFD_CLOEXEC, 0);
    off_t num_bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (num_bytes < 0) return CUDA_ERROR_INVALID_HANDLE;
    return *handle = new Physical{fd, static_cast<size_t>(num_bytes), current_device()}, CUDA_SUCCESS;
}

EMULATED cuMemAddressReserve(CUdeviceptr* address, size_t num_bytes, size_t, CUdeviceptr, uint64_t) {
    MAY_FAIL;
    void* range = mmap(nullptr, num_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *address = reinterpret_cast<CUdeviceptr>(range),
           range == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMULATED cuMemAddressFree(CUdeviceptr address, size_t num_bytes) {
    return munmap(reinterpret_cast<void*>(address), num_bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Not to be touched before cuMemSetAccess.
EMULATED cuMemMap(CUdeviceptr address, size_t num_bytes, size_t offset, Physical* handle, uint64_t) {
    MAY_FAIL;
    if (offset + num_bytes > handle->num_bytes) return CUDA_ERROR_INVALID_VALUE;
    void* at = mmap(reinterpret_cast<void*>(address), num_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->fd, offset);
    if (at == MAP_FAILED) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(mutex);
    allocations[address] = {num_bytes, Kind::kVirtual, handle->device, -1, 0};
    races::watch(address, num_bytes, handle->fd, offset);
    return CUDA_SUCCESS;
}

EMULATED cuMemUnmap(CUdeviceptr address, size_t num_bytes) {
    std::lock_guard lock(mutex);
    allocations.erase(address);
    races::unwatch(address);
    void* at = mmap(reinterpret_cast<void*>(address), num_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Two threads that ask for one device at a time were refused on GPUs; here a second time is, whenever it comes.
EMULATED cuMemSetAccess(CUdeviceptr address, size_t num_bytes, const AccessDescription* access, size_t count) {
    MAY_FAIL;
    std::lock_guard lock(mutex);
    auto it = allocations.find(address);
    if (it == allocations.end() || count != 1) return CUDA_ERROR_INVALID_VALUE;
    uint64_t device = uint64_t{1} << access->device;
    if (it->second.reachable_by & device) return CUDA_ERROR_ALREADY_MAPPED;
    it->second.reachable_by |= device;
    return mprotect(reinterpret_cast<void*>(address), num_bytes, PROT_READ | PROT_WRITE) ? CUDA_ERROR_INVALID_VALUE
                                                                                         : CUDA_SUCCESS;
}

EMULATED cuIpcGetMemHandle(CUipcHandle* handle, CUdeviceptr address) {
    MAY_FAIL;
    std::lock_guard lock(mutex);
    auto it = find(address);
    if (it == allocations.end() || it->second.kind != Kind::kPlain) return CUDA_ERROR_INVALID_VALUE;
    Exported exported = {getpid(), it->second.fd, it->second.offset, it->second.num_bytes};
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &exported, sizeof(exported));
    return CUDA_SUCCESS;
}

EMULATED cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcHandle handle, unsigned) {
    MAY_FAIL;
    if (auto forbidden = forbidden_in_captures()) return forbidden;
    Exported exported;
    memcpy(&exported, &handle, sizeof(exported));
    if (exported.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;  // as the driver answers
    std::lock_guard lock(mutex);
    std::pair<const void*, Exported> opening = {current_context(), exported};
    if (opened.contains(opening)) return CUDA_ERROR_ALREADY_MAPPED;  // seen on GPUs, though the manual has it counted
    if (auto failed = map(address, exported)) return failed;
    opened[opening] = *address;
    return CUDA_SUCCESS;
}

EMULATED cuIpcCloseMemHandle(CUdeviceptr address) {
    std::lock_guard lock(mutex);
    auto it = allocations.find(address);
    if (it == allocations.end() || it->second.kind != Kind::kImported) return CUDA_ERROR_INVALID_VALUE;
    munmap(reinterpret_cast<void*>(address), it->second.num_bytes);
    allocations.erase(it);
    std::erase_if(opened, [&](auto& mapping) { return mapping.second == address; });
    return CUDA_SUCCESS;
}
