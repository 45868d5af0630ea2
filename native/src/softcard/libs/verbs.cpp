// libibverbs.so.1: devices, ports and memory; queues are in verbs_queues.cpp.
#include <endian.h>
#include <infiniband/verbs.h>

#include <arpa/inet.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../card/gpu.h"
#include "../card/settings.h"
#include "objects.h"

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using namespace card;

namespace card {
void set_operations(verbs_context& context);  // verbs_queues.cpp
}

namespace {

constexpr int kPortsOfDevice = 4;
constexpr int kGids = 2;

std::vector<ibv_device>& devices() {
    static auto& all = *new std::vector<ibv_device>([] {
        std::vector<ibv_device> made(static_cast<size_t>(Settings::get().num_devices));
        for (size_t i = 0; i < made.size(); i++) {
            made[i].node_type = IBV_NODE_CA;
            made[i].transport_type = IBV_TRANSPORT_IB;
            std::snprintf(made[i].name, sizeof(made[i].name), "mlx5_%zu", i);
            std::snprintf(made[i].dev_name, sizeof(made[i].dev_name), "uverbs%zu", i);
            std::snprintf(made[i].dev_path, sizeof(made[i].dev_path), "/sys/class/infiniband_verbs/uverbs%zu", i);
            std::snprintf(made[i].ibdev_path, sizeof(made[i].ibdev_path), "/sys/class/infiniband/mlx5_%zu", i);
        }
        return made;
    }());
    return all;
}

ibv_mr* make_region(ibv_pd* pd, void* address, uint64_t base, size_t length, int access, uint8_t* host) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    if (!card.may_make()) return nullptr;
    void* context = host == nullptr ? gpu::current_context() : nullptr;
    Region* region = card.memory().add(domain_of(pd), base, length, static_cast<unsigned>(access), host, context);
    auto* out = new MemoryRegion{};
    out->context = pd->context;
    out->pd = pd;
    out->addr = address;
    out->length = length;
    out->lkey = out->rkey = out->key = region->key;
    return out;
}

}  // namespace

std::string card::port_of(const ibv_context* context, unsigned number) {
    return std::string(context->device->name) + ":" + std::to_string(number);
}

uint16_t card::lid_of(const ibv_context* context, uint8_t port) {
    auto device = static_cast<size_t>(context->device - devices().data());
    return static_cast<uint16_t>(Card::get().process() * 16 + device * kPortsOfDevice + port);
}

extern "C" {

int ibv_fork_init(void) { return 0; }

const char* ibv_wc_status_str(ibv_wc_status status) {
    static const char* const names[] = {
        "success", "local length error", "local queue pair operation error", "local end-to-end context error",
        "local protection error", "flushed", "memory window bind error", "bad response", "local access error",
        "remote invalid request", "remote access error", "remote operation error", "transport retry exceeded",
        "receiver not ready, retries exceeded"};
    return static_cast<size_t>(status) < std::size(names) ? names[status] : "other error";
}

ibv_device** ibv_get_device_list(int* num_devices) {
    auto& all = devices();
    auto** list = static_cast<ibv_device**>(std::calloc(all.size() + 1, sizeof(ibv_device*)));
    for (size_t i = 0; i < all.size(); i++) list[i] = &all[i];
    if (num_devices != nullptr) *num_devices = static_cast<int>(all.size());
    return list;
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    if (!card.may_make()) return nullptr;
    auto* context = new verbs_context{};
    context->sz = sizeof(verbs_context);
    context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    context->context.device = device;
    context->context.cmd_fd = context->context.async_fd = -1;
    set_operations(*context);
    return &context->context;
}

int ibv_close_device(ibv_context* context) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    card.count_removed();
    delete verbs_get_ctx(context);
    return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
    *attributes = {};
    std::snprintf(attributes->fw_ver, sizeof(attributes->fw_ver), "software");
    attributes->max_mr_size = ~0ull;
    attributes->vendor_id = 0x02c9;
    attributes->max_qp = 8192;
    attributes->max_qp_wr = 32768;
    attributes->max_sge = 16;
    attributes->max_cq = 65536;
    attributes->max_cqe = 65535;
    attributes->max_mr = 1 << 20;
    attributes->max_pd = 1 << 20;
    attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
    attributes->atomic_cap = IBV_ATOMIC_HCA;
    attributes->max_srq = 65536;
    attributes->max_srq_wr = 32767;
    attributes->max_srq_sge = 16;
    attributes->phys_port_cnt = static_cast<uint8_t>(Settings::get().num_ports);
    return 0;
}

// Callers have the whole structure, but older ones only that of _compat_ibv_port_attr: no more is written.
int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* compatible) {
    if (port == 0 || port > Settings::get().num_ports) return EINVAL;
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    auto* out = reinterpret_cast<ibv_port_attr*>(compatible);
    bool ethernet = Settings::get().ethernet;
    out->state = card.faults().port_up(port_of(context, port)) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    out->max_mtu = out->active_mtu = IBV_MTU_4096;
    out->gid_tbl_len = kGids;
    out->max_msg_sz = 1u << 30;
    out->pkey_tbl_len = 1;
    out->lid = ethernet ? 0 : lid_of(context, port);
    out->active_width = 2;
    out->active_speed = 128;
    out->phys_state = 5;
    out->flags = card.faults().limited("global-header") ? IBV_QPF_GRH_REQUIRED : 0;
    out->link_layer = ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    return 0;
}

// Index 0: made from the port's number. Index 1: the IPv4 address, mapped.
int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
    if (index < 0 || index >= kGids) return EINVAL;
    *gid = {};
    if (index == 0) {
        gid->global.subnet_prefix = htobe64(0xfe80'0000'0000'0000);
        gid->global.interface_id = htobe64(lid_of(context, port));
    } else {
        gid->raw[10] = gid->raw[11] = 0xff;
        inet_pton(AF_INET, Settings::get().address.c_str(), &gid->raw[12]);
    }
    return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    if (!card.may_make()) return nullptr;
    auto* pd = new ProtectionDomain{};
    pd->context = context;
    pd->handle = pd->number = card.new_domain();
    return pd;
}

int ibv_dealloc_pd(ibv_pd* pd) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    card.count_removed();
    delete static_cast<ProtectionDomain*>(pd);
    return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
    auto base = reinterpret_cast<uint64_t>(address);
    auto* host = gpu::is_device(address) ? nullptr : static_cast<uint8_t*>(address);
    return make_region(pd, address, base, length, access, host);
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t base, int access) {
    if (gpu::is_device(address) && base != reinterpret_cast<uint64_t>(address)) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    auto* host = gpu::is_device(address) ? nullptr : static_cast<uint8_t*>(address);
    return make_region(pd, address, base, length, access, host);
}

// The same with accesses that a kernel may not know.
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t base, unsigned access) {
    return ibv_reg_mr_iova(pd, address, length, base, static_cast<int>(access));
}

// For tests: contexts, domains, regions, pages, queues and their memory that exist.
int ibv_card_num_objects() {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    return card.num_objects();
}

// The descriptor cannot be mapped by a CPU. The memory's address in this process is `base`.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t, size_t length, uint64_t base, int descriptor, int access) {
    auto* address = reinterpret_cast<void*>(base);
    if (descriptor < 0 || !gpu::is_device(address)) {
        errno = descriptor < 0 ? EBADF : EINVAL;
        return nullptr;
    }
    return make_region(pd, address, base, length, access, nullptr);
}

int ibv_dereg_mr(ibv_mr* mr) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    card.memory().remove(static_cast<MemoryRegion*>(mr)->key);
    card.count_removed();
    delete static_cast<MemoryRegion*>(mr);
    return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
    auto* ah = new AddressHandle{};
    ah->context = pd->context;
    ah->pd = pd;
    ah->vector.rlid = htobe16(attributes->dlid);
    std::memcpy(ah->vector.rgid, attributes->grh.dgid.raw, sizeof(ah->vector.rgid));
    return ah;
}

int ibv_destroy_ah(ibv_ah* ah) {
    delete static_cast<AddressHandle*>(ah);
    return 0;
}

}  // extern "C"
