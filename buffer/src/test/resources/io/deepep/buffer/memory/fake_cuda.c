// Stands in for the NVIDIA driver where there is none: two devices whose memory is host memory. Has what contexts and
// memory need, between processes too, and no kernels. Holds callers to CUDA's rules: memory that another process has
// open by CUDA IPC must not be freed, and a context opens it once.
//
// FAKE_CUDA_NO_FD      devices cannot export descriptors
// FAKE_CUDA_NO_IPC     no memory has an IPC handle
// FAKE_CUDA_NO_MEMORY  there is none that has an IPC handle
// FAKE_CUDA_WRONG_FD   importing a descriptor maps other memory

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kInvalidValue = 1, kOutOfMemory = 2, kAlreadyMapped = 208, kNotSupported = 801 };
enum { kPage = 4096, kMaxMappings = 256, kPosixFd = 103, kNumSms = 16 };

typedef struct {
    int pid;
    int fd;
    size_t size;
    char rest[48];
} IpcHandle;

typedef struct {
    uint64_t base;
    size_t size;
    int fd;
    IpcHandle opened;  // of another process, by which context
    uint64_t context;
} Mapping;

static Mapping g_mappings[kMaxMappings];
static atomic_int g_num_live;
static _Thread_local uint64_t g_context;

// What a test compares with 0 once everything is closed.
int fakeCudaLive(void) { return atomic_load(&g_num_live); }

static int has(const char* variable) { return getenv(variable) != NULL; }

static int newMemory(size_t size) {
    int fd = memfd_create("fake-cuda", 0);
    return ftruncate(fd, (off_t)size) == 0 ? fd : -1;
}

static Mapping* find(uint64_t base) {
    for (int i = 0; i < kMaxMappings; i++) {
        if (g_mappings[i].base == base) return &g_mappings[i];
    }
    return NULL;
}

// The page behind the memory counts the processes that have it open.
static atomic_int* openers(const Mapping* m) { return (atomic_int*)(uintptr_t)(m->base + m->size); }

static void lock(atomic_flag* flag) {
    while (atomic_flag_test_and_set(flag)) {
    }
}

static int addMapping(uint64_t* address, int fd, size_t size) {
    static atomic_flag adding = ATOMIC_FLAG_INIT;
    void* base = mmap(NULL, size + kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return kInvalidValue;
    lock(&adding);
    Mapping* slot = find(0);
    *slot = (Mapping){.base = (uint64_t)(uintptr_t)base, .size = size, .fd = fd};
    atomic_flag_clear(&adding);
    *address = slot->base;
    atomic_fetch_add(&g_num_live, 1);
    return 0;
}

static void removeMapping(Mapping* m) {
    munmap((void*)(uintptr_t)m->base, m->size + kPage);
    close(m->fd);
    m->base = 0;
    atomic_fetch_sub(&g_num_live, 1);
}

int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int* count) { return *count = 2, 0; }
int cuDeviceGetName(char* name, int length, int device) { return snprintf(name, (size_t)length, "Fake %d", device), 0; }
int cuDeviceGetPCIBusId(char* id, int length, int device) {
    return snprintf(id, (size_t)length, "0000:%02x:00.0", device), 0;
}
int cuDeviceGetUuid_v2(char* uuid, int device) { return memset(uuid, device + 1, 16), 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = (size_t)1 << 30, device < 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    *value = attribute == kPosixFd ? !has("FAKE_CUDA_NO_FD") : attribute == 16 ? kNumSms : 0;
    return device < 0;
}
int cuDevicePrimaryCtxRetain(uint64_t* context, int device) { return *context = 100 + (uint64_t)device, 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device < 0; }
int cuCtxGetCurrent(uint64_t* context) { return *context = g_context, 0; }
int cuCtxSetCurrent(uint64_t context) { return g_context = context, 0; }
int cuGetErrorName(int code, const char** name) { return *name = "CUDA_ERROR_FAKE", code == 0; }
int cuGetErrorString(int code, const char** text) { return *text = "as a test asked for", code == 0; }
int cuCtxGetDevice(int* device) { return *device = (int)g_context - 100, 0; }
int cuDeviceCanAccessPeer(int* can, int device, int peer) { return *can = device != peer, 0; }
int cuCtxEnablePeerAccess(uint64_t peer, unsigned flags) { return peer == 0 || flags != 0; }
int cuStreamSynchronize(uint64_t stream) { return stream != 0; }

int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t n) { return memcpy((void*)(uintptr_t)to, from, n), 0; }
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t n) { return memcpy(to, (void*)(uintptr_t)from, n), 0; }
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t n) { return memset((void*)(uintptr_t)to, value, n), 0; }

int cuMemAlloc_v2(uint64_t* address, size_t size) {
    if (has("FAKE_CUDA_NO_MEMORY")) return kOutOfMemory;
    size_t rounded = (size + kPage - 1) / kPage * kPage;
    return addMapping(address, newMemory(rounded + kPage), rounded);
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
    *free = *total = 0;
    return 0;
}

int cuMemFree_v2(uint64_t address) {
    Mapping* m = find(address);
    if (m == NULL) return kInvalidValue;
    if (atomic_load(openers(m)) != 0) {
        fprintf(stderr, "fake CUDA: memory is freed that another process has open\n");
        abort();
    }
    removeMapping(m);
    return 0;
}

int cuMemGetAddressRange_v2(uint64_t* base, size_t* size, uint64_t address) {
    Mapping* m = find(address);
    if (m == NULL) return kInvalidValue;
    if (base != NULL) *base = m->base;
    if (size != NULL) *size = m->size;
    return 0;
}

int cuIpcGetMemHandle(IpcHandle* handle, uint64_t address) {
    Mapping* m = find(address);
    if (m == NULL) return kInvalidValue;
    if (has("FAKE_CUDA_NO_IPC")) return kNotSupported;
    *handle = (IpcHandle){getpid(), m->fd, m->size, {0}};
    return 0;
}

static int hasOpened(const IpcHandle* handle) {
    for (int i = 0; i < kMaxMappings; i++) {
        Mapping* m = &g_mappings[i];
        if (m->base != 0 && m->context == g_context && memcmp(&m->opened, handle, sizeof *handle) == 0) return 1;
    }
    return 0;
}

static int openMemory(uint64_t* address, IpcHandle handle) {
    char path[64];
    if (hasOpened(&handle)) return kAlreadyMapped;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.pid, handle.fd);
    int status = addMapping(address, open(path, O_RDWR), handle.size);
    if (status != 0) return status;
    Mapping* m = find(*address);
    m->opened = handle;
    m->context = g_context;
    atomic_fetch_add(openers(m), 1);
    return 0;
}

int cuIpcOpenMemHandle_v2(uint64_t* address, IpcHandle handle, unsigned flags) {
    static atomic_flag opening = ATOMIC_FLAG_INIT;
    if (handle.pid == getpid() || flags != 1) return kInvalidValue;
    lock(&opening);
    int status = openMemory(address, handle);
    atomic_flag_clear(&opening);
    return status;
}

int cuIpcCloseMemHandle(uint64_t address) {
    Mapping* m = find(address);
    if (m == NULL || m->opened.pid == 0) return kInvalidValue;
    atomic_fetch_sub(openers(m), 1);
    removeMapping(m);
    return 0;
}

// Virtual memory: a handle is a descriptor.
int cuMemGetAllocationGranularity(size_t* bytes, const void* properties, unsigned option) {
    return *bytes = (size_t)1 << 16, properties == NULL || option > 1;
}
int cuMemCreate(uint64_t* handle, size_t size, const void* properties, uint64_t flags) {
    atomic_fetch_add(&g_num_live, 1);
    return *handle = (uint64_t)newMemory(size), properties == NULL || flags != 0;
}
int cuMemRelease(uint64_t handle) {
    atomic_fetch_sub(&g_num_live, 1);
    return close((int)handle) != 0;
}
int cuMemExportToShareableHandle(int* fd, uint64_t handle, int type, uint64_t flags) {
    return *fd = dup((int)handle), *fd < 0 || type != 1 || flags != 0;
}
int cuMemImportFromShareableHandle(uint64_t* handle, void* fd, int type) {
    atomic_fetch_add(&g_num_live, 1);
    int imported = has("FAKE_CUDA_WRONG_FD") ? newMemory((size_t)64 << 20) : dup((int)(intptr_t)fd);
    return *handle = (uint64_t)imported, imported < 0 || type != 1;
}
int cuMemAddressReserve(uint64_t* address, size_t size, size_t alignment, uint64_t wish, uint64_t flags) {
    void* range = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *address = (uint64_t)(uintptr_t)range;
    atomic_fetch_add(&g_num_live, 1);
    return range == MAP_FAILED || alignment != 0 || wish != 0 || flags != 0;
}
int cuMemAddressFree(uint64_t address, size_t size) {
    atomic_fetch_sub(&g_num_live, 1);
    return munmap((void*)(uintptr_t)address, size) != 0;
}
int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, uint64_t flags) {
    void* at = mmap((void*)(uintptr_t)address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, (int)handle,
                    (off_t)offset);
    atomic_fetch_add(&g_num_live, 1);
    return at == MAP_FAILED || flags != 0;
}
int cuMemUnmap(uint64_t address, size_t size) {
    void* at = mmap((void*)(uintptr_t)address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    atomic_fetch_sub(&g_num_live, 1);
    return at == MAP_FAILED;
}
int cuMemSetAccess(uint64_t address, size_t size, const void* access, size_t count) {
    return address == 0 || size == 0 || access == NULL || count != 1;
}
