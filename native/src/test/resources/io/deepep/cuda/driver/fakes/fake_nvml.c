// Stands in for libnvidia-ml.so.1: four GPUs. 0 and 1 have 18 and 16 links to switches, 2 and 3 four to each other.
// The links of 0 are those of a B200, those of 1 of an H200; 2 and 3 do not tell how fast theirs are.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info;

_Static_assert(sizeof(pci_info) == 68, "nvmlPciInfo_t");

typedef struct {
    unsigned version;
    unsigned char cluster_uuid[16];
    int status;
    unsigned clique_id;
    unsigned char state;
    unsigned health_mask;
} fabric_info;

_Static_assert(sizeof(fabric_info) == 36, "nvmlGpuFabricInfo_v2_t");

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned value_type;
    int status;
    unsigned long long value;
} field_value;

_Static_assert(sizeof(field_value) == 40, "nvmlFieldValue_t");

int fake_init_status;
int fake_open;
int fake_fabric_state = 3;  // completed
int fake_fabric_status;

static int number(void *gpu) { return (int)(uintptr_t)gpu - 1; }
static int num_links(int gpu) { return gpu == 0 ? 18 : gpu == 1 ? 16 : 4; }

int nvmlInit_v2(void) {
    fake_open++;
    return fake_init_status;
}

int nvmlShutdown(void) {
    fake_open--;
    return 0;
}


int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **gpu) {
    unsigned bus;
    if (sscanf(bus_id, "0000:%x:00.0", &bus) != 1 || bus < 1 || bus > 4) return 6;
    *gpu = (void *)(uintptr_t)bus;
    return 0;
}

int nvmlDeviceGetP2PStatus(void *a, void *b, int capability, int *status) {
    int linked = number(a) / 2 == number(b) / 2;
    *status = capability == 2 && linked ? 0 : 5;
    return 0;
}

int nvmlDeviceGetNvLinkState(void *gpu, unsigned link, int *active) {
    if (link >= 18) return 2;
    *active = link < (unsigned)num_links(number(gpu));
    return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *gpu, unsigned link, int *type) {
    if (link >= 18) return 2;
    *type = number(gpu) < 2 ? 2 : 0;
    return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *gpu, unsigned link, pci_info *info) {
    if (link >= 18 || number(gpu) < 2) return 3;
    strcpy(info->bus_id, number(gpu) == 2 ? "00000000:04:00.0" : "00000000:03:00.0");
    return 0;
}

int nvmlDeviceGetFieldValues(void *gpu, int count, field_value *values) {
    if (count != 1) return 2;
    values->status = values->field == 90 && values->scope == 0 && number(gpu) < 2 ? 0 : 3;
    values->value = values->status ? 0 : number(gpu) == 0 ? 53125 : 26562;
    return 0;
}

// 0 to 2 are of one cluster, 2 in a clique of its own; the switches of 3 connect one host.
int nvmlDeviceGetGpuFabricInfoV(void *gpu, fabric_info *info) {
    if (info->version != (sizeof(*info) | 2 << 24)) return 25;
    memset(info->cluster_uuid, number(gpu) < 3 ? 0xab : 0, sizeof(info->cluster_uuid));
    info->status = fake_fabric_status;
    info->clique_id = number(gpu) == 2 ? 7 : 1;
    info->state = fake_fabric_state;
    return 0;
}
