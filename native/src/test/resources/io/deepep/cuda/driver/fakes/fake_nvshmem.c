// Stands in for libnvshmem_host.so.3 on machines without GPU. Records what is called, and, where the real library would
// end the process or follow a wild pointer, records that as fatal. Structs are written down from NVSHMEM's own header.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int version;
    char internal[124];
} unique_id;

typedef struct {
    int version;
    unique_id *id;
    int myrank;
    int nranks;
} unique_id_args;

typedef struct {
    int version;
    unique_id_args uid_args;
    char content[96];
} init_args;

typedef struct {
    int version;
    void *mpi_comm;
    init_args args;
} init_attr;

_Static_assert(sizeof(unique_id) == 128, "nvshmemx_uniqueid_t");
_Static_assert(sizeof(unique_id_args) == 24, "nvshmemx_uniqueid_args_t");
_Static_assert(sizeof(init_args) == 128, "nvshmemx_init_args_t");
_Static_assert(sizeof(init_attr) == 144, "nvshmemx_init_attr_t");

enum { MAX_LIVE = 64, OWN_TEAMS = 6 };

static char calls[1 << 16];
static char fatal[1 << 12];
static int bootstrapped, initialized, max_teams, num_teams, npes, team_start, team_stride, team_size;
static uintptr_t live_memory[MAX_LIVE];
static uintptr_t live_modules[MAX_LIVE];
static uintptr_t next_address = 1 << 20;
static init_attr *given_attr;
static unique_id *given_id;
static int thread_known;
static pthread_t thread;

// What tests set: how calls go wrong.
int fake_version[3] = {3, 4, 5};
int fake_uniqueid_status, fake_init_status_code, fake_status = 2, fake_out_of_memory, fake_module_status;
int fake_split_status, fake_transport_fails, fake_team_shift;
volatile int fake_hang;

static void append(char *log, size_t size, const char *format, va_list arguments) {
    size_t used = strlen(log);
    vsnprintf(log + used, size - used, format, arguments);
    strncat(log, "\n", size - strlen(log) - 1);
}

static void record(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(calls, sizeof(calls), format, arguments);
    va_end(arguments);
}

static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(fatal, sizeof(fatal), format, arguments);
    va_end(arguments);
}

// All calls between a start and its end come from one thread.
static void enter(const char *name, int needs_start) {
    if (!thread_known) {
        thread = pthread_self();
        thread_known = 1;
    } else if (!pthread_equal(thread, pthread_self())) {
        die("%s from another thread", name);
    }
    if (needs_start && !initialized) die("%s before the start or after the end", name);
    while (fake_hang) usleep(1000);
}

const char *fake_calls(void) { return calls; }
const char *fake_fatal(void) { return fatal; }

void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch) {
    *major = fake_version[0];
    *minor = fake_version[1];
    *patch = fake_version[2];
}

int nvshmemx_get_uniqueid(unique_id *id) {
    enter("get_uniqueid", 0);
    const char *teams = getenv("NVSHMEM_MAX_TEAMS");
    record("get_uniqueid version=%x teams=%s nvls=%s", id->version, teams ? teams : "", getenv("NVSHMEM_DISABLE_NVLS"));
    for (int i = 0; i < 124; i++) id->internal[i] = (char)(i * 7 + 1);
    return fake_uniqueid_status;
}

int nvshmemx_set_attr_uniqueid_args(int pe, int pes, const unique_id *id, init_attr *attr) {
    enter("set_attr", 0);
    attr->args.uid_args.id = (unique_id *)id;
    attr->args.uid_args.myrank = pe;
    attr->args.uid_args.nranks = pes;
    given_attr = attr;
    given_id = (unique_id *)id;
    npes = pes;
    return 0;
}

// Opens the transport that the environment names, and keeps it unless its start fails.
static void start_transport(void) {
    const char *ibgda = getenv("NVSHMEM_IB_ENABLE_IBGDA"), *remote = getenv("NVSHMEM_REMOTE_TRANSPORT");
    const char *name = ibgda && *ibgda == '1' ? "ibgda" : remote;
    char path[4096];
    Dl_info self;
    if (!name || strcmp(name, "none") == 0 || !dladdr((void *)start_transport, &self)) return;
    snprintf(path, sizeof(path), "%.*s/nvshmem_transport_%s.so.3", (int)(strrchr(self.dli_fname, '/') - self.dli_fname),
             self.dli_fname, name);
    void *library = dlopen(path, RTLD_NOW);
    if (library && fake_transport_fails) dlclose(library);
}

int nvshmemx_hostlib_init_attr(unsigned flags, init_attr *attr) {
    enter("init", 0);
    unique_id *id = attr->args.uid_args.id;
    int intact = attr == given_attr && id == given_id && id->version == 0x10080;
    for (int i = 0; i < 124; i++) intact &= id->internal[i] == (char)(i * 7 + 1);
    record("init flags=%u versions=%x,%x,%x pe=%d of %d id %s", flags, attr->version, attr->args.version,
           attr->args.uid_args.version, attr->args.uid_args.myrank, attr->args.uid_args.nranks,
           intact ? "intact" : "broken");
    const char *teams = getenv("NVSHMEM_MAX_TEAMS");
    max_teams = teams ? atoi(teams) - OWN_TEAMS : 0;
    start_transport();
    bootstrapped = 1;
    initialized = fake_init_status_code == 0 && fake_status >= 2;
    return fake_init_status_code;
}

int nvshmemx_init_status(void) { return initialized ? fake_status : bootstrapped; }

void nvshmemx_hostlib_finalize(void) {
    enter("finalize", 1);
    for (int i = 0; i < MAX_LIVE; i++) {
        if (live_modules[i]) die("finalize with a registered module");
    }
    record("finalize");
    initialized = 0;
    bootstrapped = 0;
    thread_known = 0;
}

static int find(uintptr_t *live, uintptr_t value) {
    for (int i = 0; i < MAX_LIVE; i++) {
        if (live[i] == value) return i;
    }
    return -1;
}

void nvshmem_global_exit(int status) {
    enter("global_exit", 1);
    record("global_exit %d", status);
}

uintptr_t nvshmem_align(size_t alignment, size_t size) {
    enter("align", 1);
    record("align %zu %zu", alignment, size);
    if (fake_out_of_memory) return 0;
    uintptr_t address = (next_address + alignment - 1) / alignment * alignment;
    next_address = address + size;
    live_memory[find(live_memory, 0)] = address;
    return address;
}

void nvshmem_free(uintptr_t address) {
    enter("free", 1);
    int at = find(live_memory, address);
    if (at < 0) {
        die("free of an unknown address");
        return;
    }
    live_memory[at] = 0;
    record("free");
}

uintptr_t nvshmem_ptr(uintptr_t address, int pe) {
    enter("ptr", 1);
    if (pe < 0 || pe >= npes) die("ptr of pe %d", pe);
    return pe == 1 ? 0 : address + ((uintptr_t)pe << 40);
}

void nvshmem_barrier_all(void) {
    enter("barrier", 1);
    record("barrier");
}

void nvshmemx_quiet_on_stream(uintptr_t stream) {
    enter("quiet on stream", 1);
    record("quiet on stream %lx", (unsigned long)stream);
}

int nvshmem_team_split_strided(int parent, int start, int stride, int size, const void *config, long mask, int *team) {
    enter("split", 1);
    if (start < 0 || stride < 1 || size < 1 || start + stride * (size - 1) >= npes) die("split out of range");
    if (num_teams == max_teams) die("split without a free team");
    record("split of %d: %d %d %d config=%p mask=%ld", parent, start, stride, size, config, mask);
    if (fake_split_status) return fake_split_status;
    team_start = start, team_stride = stride, team_size = size;
    *team = OWN_TEAMS + num_teams++;
    return 0;
}

void nvshmem_team_destroy(int team) {
    enter("destroy", 1);
    if (team < OWN_TEAMS) die("destroy of team %d", team);
    num_teams--;
    record("destroy");
}

int nvshmem_team_my_pe(int team) {
    enter("my_pe", 1);
    return team < OWN_TEAMS ? -1 : (given_attr->args.uid_args.myrank - team_start) / team_stride + fake_team_shift;
}

int nvshmem_team_n_pes(int team) {
    enter("n_pes", 1);
    return team < OWN_TEAMS ? -1 : team_size;
}

int nvshmemx_cumodule_init(uintptr_t module) {
    enter("module init", 1);
    record("module %lx", (unsigned long)module);
    if (fake_module_status == 0) live_modules[find(live_modules, 0)] = module;
    return fake_module_status;
}

int nvshmemx_cumodule_finalize(uintptr_t module) {
    enter("module finalize", 1);
    int at = find(live_modules, module);
    if (at < 0) {
        die("finalize of an unknown module");
        return 1;
    }
    live_modules[at] = 0;
    record("module end");
    return 0;
}
