// The part of NVSHMEM's host library that io.deepep.cuda.nvshmem binds, between processes of one host whose GPUs are
// emulated. Unless NVSHMEM_DISABLE_P2P is set, each maps the memory of all others, as over NVLink; what kernels send
// takes the same way whatever the transport.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "../calls.h"
#include "meeting.h"
#include "network.h"
#include "state.h"

#define NVSHMEM extern "C" __attribute__((visibility("default")))

using namespace deepep::emulator;

// Of the driver beside this.
EMULATED cuMemAlloc_v2(CUdeviceptr* address, size_t num_bytes);
EMULATED cuMemFree_v2(CUdeviceptr address);
EMULATED cuIpcGetMemHandle(CUipcHandle* handle, CUdeviceptr address);
EMULATED cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcHandle handle, unsigned flags);
EMULATED cuIpcCloseMemHandle(CUdeviceptr address);
EMULATED cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* num_bytes, struct Module* module, const char* name);

namespace {

struct UniqueId {
    int version;
    MeetingId meeting;
    char unused[116];
};
static_assert(sizeof(UniqueId) == 128);

struct Team {
    int start, stride, size;
};

enum { kOk = 0, kInvalid = 1, kNotStarted = 0, kStarted = 2 };

constexpr int kFirstTeam = 6, kMaxTeams = 32;  // NVSHMEM's own come before

Meeting* meeting;
int own_pe, num_pes, status = kNotStarted;
Team teams[kMaxTeams];

// For ever: its thread runs until the process ends.
Network& network() {
    static Network& only = *new Network;
    return only;
}

bool is_set(const char* variable) {
    const char* value = getenv(variable);
    return value && *value == '1';
}

// Whoever has asked for a transport looks whether it is loaded.
void load_transport() {
    const char* remote = getenv("NVSHMEM_REMOTE_TRANSPORT");
    std::string name = is_set("NVSHMEM_IB_ENABLE_IBGDA") ? "ibgda" : remote ? remote : "none";
    Dl_info self;
    if (name == "none" || !dladdr(reinterpret_cast<void*>(load_transport), &self)) return;
    std::string path = self.dli_fname;
    path.resize(path.rfind('/') + 1);
    dlopen((path + "nvshmem_transport_" + name + ".so.3").c_str(), RTLD_NOW);
}

void meet() {
    network().quiet();
    meeting->barrier(num_pes);
}

void free_here(const Symmetric& memory) {
    for (int pe = 0; pe < num_pes; ++pe)
        if (pe != own_pe) cuIpcCloseMemHandle(memory.of_pe[pe]);
    meeting->barrier(num_pes);
    cuMemFree_v2(memory.own);
}

}  // namespace

NVSHMEM void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
    *major = 3, *minor = 4, *patch = 5;
}

NVSHMEM int nvshmemx_get_uniqueid(UniqueId* id) {
    meeting = make_meeting(id->meeting);
    return meeting ? kOk : kInvalid;
}

NVSHMEM int nvshmemx_set_attr_uniqueid_args(int pe, int pes, const UniqueId* id, void*) {
    if (pes > kMaxPes) return kInvalid;
    own_pe = pe, num_pes = pes;
    if (pe != 0) meeting = join_meeting(id->meeting);
    return meeting ? kOk : kInvalid;
}

NVSHMEM int nvshmemx_hostlib_init_attr(unsigned, void*) {
    load_transport();
    meet();
    return status = kStarted, kOk;
}

NVSHMEM int nvshmemx_init_status() { return status; }

NVSHMEM void nvshmemx_hostlib_finalize() {
    meet();
    for (const Symmetric& memory : network().remove_all()) free_here(memory);
    leave_meeting(meeting);
    status = kNotStarted;
}

NVSHMEM void nvshmem_global_exit(int) {}

NVSHMEM CUdeviceptr nvshmem_align(size_t, size_t num_bytes) {
    Symmetric memory = {0, num_bytes, std::vector<uint64_t>(num_pes)};
    if (cuMemAlloc_v2(&memory.own, num_bytes) || cuIpcGetMemHandle(&meeting->memory[own_pe], memory.own)) return 0;
    meeting->barrier(num_pes);
    bool all = true;
    for (int pe = 0; pe < num_pes; ++pe) {
        memory.of_pe[pe] = memory.own;
        if (pe != own_pe) all &= cuIpcOpenMemHandle_v2(&memory.of_pe[pe], meeting->memory[pe], 0) == CUDA_SUCCESS;
    }
    meeting->barrier(num_pes);
    if (!all) return 0;
    network().add(memory);
    return memory.own;
}

NVSHMEM void nvshmem_free(CUdeviceptr address) {
    meet();
    free_here(network().remove(address));
}

NVSHMEM CUdeviceptr nvshmem_ptr(CUdeviceptr address, int pe) {
    return pe != own_pe && is_set("NVSHMEM_DISABLE_P2P") ? 0 : network().address(address, pe);
}

NVSHMEM void nvshmem_barrier_all() { meet(); }

NVSHMEM void nvshmemx_quiet_on_stream(Stream* stream) {
    enqueue(stream_of(stream), {[] { return network().quiet(), true; }});
}

NVSHMEM int nvshmem_team_split_strided(int, int start, int stride, int size, const void*, long, int* team) {
    for (int i = 0; i < kMaxTeams; ++i)
        if (teams[i].size == 0) {
            teams[i] = {start, stride, size};
            meeting->barrier(num_pes);
            return *team = kFirstTeam + i, kOk;
        }
    return kInvalid;
}

NVSHMEM void nvshmem_team_destroy(int team) { teams[team - kFirstTeam] = {}; }

NVSHMEM int nvshmem_team_my_pe(int team) {
    const Team& of = teams[team - kFirstTeam];
    return (own_pe - of.start) / of.stride;
}

NVSHMEM int nvshmem_team_n_pes(int team) { return teams[team - kFirstTeam].size; }

NVSHMEM int nvshmemx_cumodule_init(struct Module* module) {
    CUdeviceptr state;
    if (cuModuleGetGlobal_v2(&state, nullptr, module, "nvshmemi_device_state_d")) return kInvalid;
    *reinterpret_cast<NvshmemCalls*>(state) = {
        [](int block, int pe, void* target, const void* source, size_t num_bytes, uint64_t* signal, uint64_t value) {
            network().post(block, pe, target, source, num_bytes, signal, value);
        },
        [] { network().quiet(); }};
    return kOk;
}

NVSHMEM int nvshmemx_cumodule_finalize(struct Module*) { return kOk; }
