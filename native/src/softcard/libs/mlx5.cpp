// libmlx5.so.1: doorbell pages, registered memory of queues, and queues made by commands.
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "../card/gpu.h"
#include "../card/settings.h"
#include "devx.h"
#include "objects.h"

using namespace card;
namespace devx = card::devx;

struct mlx5dv_devx_obj {
    enum Kind { kCompletionQueue, kQueuePair } kind;
    uint32_t number;
    QueuePair* queue_pair;
    ibv_context* context = nullptr;
};

namespace {

constexpr uint32_t kLogPageBytes = 9;
constexpr uint32_t kDedicatedRegister = 1u << 31;  // of mlx5dv.h since rdma-core 45

struct QueueMemory : mlx5dv_devx_umem {
    uint8_t* address;
    size_t num_bytes;
};

std::map<uint32_t, QueueMemory*>& memories() {
    static auto& all = *new std::map<uint32_t, QueueMemory*>();
    return all;
}

// That part of registered memory; null if it has not so much.
uint8_t* part(uint64_t number, uint64_t offset, uint64_t num_bytes) {
    auto found = memories().find(static_cast<uint32_t>(number));
    if (found == memories().end() || offset + num_bytes > found->second->num_bytes) return nullptr;
    return found->second->address + offset;
}

mlx5dv_devx_obj* refuse(void* out, const char* what) {
    say("a command is refused: %s", what);
    devx::set(out, devx::kStatus, devx::kBadParameter);
    errno = EREMOTEIO;
    return nullptr;
}

mlx5dv_devx_obj* create_completion_queue(const void* in, void* out) {
    Card& card = Card::get();
    uint64_t log = devx::get(in, devx::kLogCompletions);
    uint8_t* ring = part(devx::get(in, devx::kRingMemory), devx::get(in, devx::kRingOffset),
                         sizeof(mlx5_cqe64) << log);
    if (ring == nullptr) return refuse(out, "completion queue outside its memory");
    uint32_t number = card.new_completion_queue_number();
    card.add(std::make_unique<CompletionQueue>(number, ring, 1u << log, devx::get(in, devx::kCollapsed) != 0));
    devx::set(out, devx::kNumberOut, number);
    return new mlx5dv_devx_obj{mlx5dv_devx_obj::kCompletionQueue, number, nullptr};
}

mlx5dv_devx_obj* create_queue_pair(const void* in, void* out) {
    Card& card = Card::get();
    QueuePair::Setup setup;
    uint64_t transport = devx::get(in, devx::kTransport), log = devx::get(in, devx::kLogEntries);
    if (transport != devx::kConnectedTransport && transport != devx::kDynamicInitiatorTransport) {
        return refuse(out, "queue pair of that transport");
    }
    if (card.faults().limited("real-time") && devx::get(in, devx::kTimeStamps) == devx::kFreeRunning) {
        return refuse(out, "queue pair with free-running time stamps");
    }
    setup.kind = transport == devx::kConnectedTransport ? QueuePair::Kind::kConnected
                                                        : QueuePair::Kind::kDynamicInitiator;
    setup.domain = static_cast<uint32_t>(devx::get(in, devx::kDomain));
    setup.ring.num_blocks = 1u << log;
    setup.ring.dynamically_connected = setup.kind == QueuePair::Kind::kDynamicInitiator;
    setup.ring.blocks = part(devx::get(in, devx::kEntriesMemory), devx::get(in, devx::kEntriesOffset),
                             static_cast<uint64_t>(MLX5_SEND_WQE_BB) << log);
    uint8_t* record = part(devx::get(in, devx::kRecordMemory), devx::get(in, devx::kRecordOffset), sizeof(uint64_t));
    if (setup.ring.blocks == nullptr || record == nullptr) return refuse(out, "queue pair outside its memory");
    setup.record = reinterpret_cast<const uint32_t*>(record);
    auto number_in = [&](devx::Field field) { return static_cast<uint32_t>(devx::get(in, field)); };
    setup.send_completions = card.completion_queue(number_in(devx::kSendCompletions));
    setup.receive_completions = card.completion_queue(number_in(devx::kReceiveCompletions));
    setup.receives = card.receive_queue(number_in(devx::kReceiveQueue));
    if (setup.send_completions == nullptr) return refuse(out, "queue pair without completion queue");
    if ((setup.number = card.new_queue_number()) == 0) return nullptr;
    devx::set(out, devx::kNumberOut, setup.number);
    return new mlx5dv_devx_obj{mlx5dv_devx_obj::kQueuePair, setup.number, &card.add(setup)};
}

unsigned access_in(const void* in) {
    unsigned access = 0;
    if (devx::get(in, devx::kWriteAccess) != 0) access |= IBV_ACCESS_REMOTE_WRITE;
    if (devx::get(in, devx::kReadAccess) != 0) access |= IBV_ACCESS_REMOTE_READ;
    if (devx::get(in, devx::kAtomicAccess) != 0) access |= IBV_ACCESS_REMOTE_ATOMIC;
    return access;
}

bool has_global_header(const void* in) {
    bool has_gid = devx::get(in, devx::kGidHigh) != 0 || devx::get(in, devx::kGidLow) != 0;
    return has_gid && devx::get(in, devx::kGlobalHeader) != 0;
}

void describe_capabilities(uint64_t kind, void* out) {
    if (kind == devx::kGeneral) {
        devx::set(out, devx::kLogDoorbellBytes, kLogPageBytes);
        devx::set(out, devx::kCompletionVersion, 1);
        devx::set(out, devx::kRelaxedOrderingWrite, Settings::get().relaxed_ordering ? 1 : 0);
    } else if (kind == devx::kAtomics) {
        devx::set(out, devx::kHostOrder, 1);
        devx::set(out, devx::kHostOrderSupported, 1);
        devx::set(out, devx::kAtomicOperations, devx::kAllAtomics);
        devx::set(out, devx::kAtomicSizes, devx::kFourAndEightBytes);
        devx::set(out, devx::kAtomicSizesDc, devx::kFourAndEightBytes);
    }
}

}  // namespace

extern "C" {

bool mlx5dv_is_supported(ibv_device*) { return true; }

ibv_mr* mlx5dv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int, int) {
    errno = EOPNOTSUPP;  // data direct, which these cards have not
    return nullptr;
}

int mlx5dv_get_data_direct_sysfs_path(ibv_context*, char*, size_t) { return ENODEV; }

int mlx5dv_init_obj(mlx5dv_obj* objects, uint64_t kinds) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    if ((kinds & MLX5DV_OBJ_PD) != 0) objects->pd.out->pdn = domain_of(objects->pd.in);
    if ((kinds & MLX5DV_OBJ_SRQ) != 0) objects->srq.out->srqn = objects->srq.in->handle;
    if ((kinds & MLX5DV_OBJ_AH) != 0) objects->ah.out->av = &static_cast<AddressHandle*>(objects->ah.in)->vector;
    if ((kinds & MLX5DV_OBJ_CQ) != 0) {
        CompletionQueue& queue = *static_cast<VerbsCompletionQueue*>(objects->cq.in)->own;
        mlx5dv_cq& out = *objects->cq.out;
        out.buf = queue.expose_ring();
        out.cqe_cnt = queue.num_entries();
        out.cqe_size = sizeof(mlx5_cqe64);
        out.cqn = queue.number();
        out.dbrec = reinterpret_cast<__be32*>(queue.record());
        out.cq_uar = nullptr;
    }
    return (kinds & ~static_cast<uint64_t>(MLX5DV_OBJ_PD | MLX5DV_OBJ_SRQ | MLX5DV_OBJ_AH | MLX5DV_OBJ_CQ)) == 0
               ? 0
               : ENOTSUP;
}

// Only targets of dynamic connections are made this way.
ibv_qp* mlx5dv_create_qp(ibv_context* context, ibv_qp_init_attr_ex* attributes, mlx5dv_qp_init_attr* own) {
    if (attributes->qp_type != IBV_QPT_DRIVER || own->dc_init_attr.dc_type != MLX5DV_DCTYPE_DCT) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    QueuePair::Setup setup;
    if ((setup.number = card.new_queue_number()) == 0) return nullptr;
    setup.domain = domain_of(attributes->pd);
    setup.kind = QueuePair::Kind::kDynamicTarget;
    setup.send_completions = static_cast<VerbsCompletionQueue*>(attributes->send_cq)->own;
    setup.receive_completions = static_cast<VerbsCompletionQueue*>(attributes->recv_cq)->own;
    setup.dc_key = own->dc_init_attr.dct_access_key;
    return wrap(context, attributes->pd, card.add(setup), attributes->qp_type);
}

int mlx5dv_devx_query_eqn(ibv_context*, uint32_t, uint32_t* number) {
    *number = 1;
    return 0;
}

mlx5dv_devx_uar* mlx5dv_devx_alloc_uar(ibv_context* context, uint32_t kind) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    bool only_one = card.faults().limited("one-register");
    if (only_one && kind == kDedicatedRegister) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    if (!card.may_make()) return nullptr;
    DoorbellPage& page = card.add_doorbell_page(only_one ? context : nullptr);
    auto* uar = new mlx5dv_devx_uar{};
    uar->reg_addr = uar->base_addr = page.address;
    uar->page_id = page.number;
    return uar;
}

void mlx5dv_devx_free_uar(mlx5dv_devx_uar* uar) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    card.remove_doorbell_page(uar->page_id);
    card.count_removed();
    delete uar;
}

mlx5dv_devx_umem* mlx5dv_devx_umem_reg(ibv_context*, void* address, size_t size, uint32_t) {
    if (gpu::is_device(address)) {
        say("queues in a GPU's memory cannot be read by a CPU: set NVSHMEM_IBGDA_FORCE_NIC_BUF_MEMTYPE=hostmem");
        errno = EOPNOTSUPP;
        return nullptr;
    }
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    if (!card.may_make()) return nullptr;
    static uint32_t last = 0;
    auto* memory = new QueueMemory{};
    memory->umem_id = ++last;
    memory->address = static_cast<uint8_t*>(address);
    memory->num_bytes = size;
    memories()[memory->umem_id] = memory;
    return memory;
}

mlx5dv_devx_umem* mlx5dv_devx_umem_reg_ex(ibv_context* context, mlx5dv_devx_umem_in* in) {
    if ((in->comp_mask & MLX5DV_UMEM_MASK_DMABUF) != 0) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    return mlx5dv_devx_umem_reg(context, in->addr, in->size, in->access);
}

int mlx5dv_devx_umem_dereg(mlx5dv_devx_umem* umem) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    memories().erase(umem->umem_id);
    card.count_removed();
    delete static_cast<QueueMemory*>(umem);
    return 0;
}

int mlx5dv_devx_general_cmd(ibv_context*, const void* in, size_t, void* out, size_t) {
    if (devx::get(in, devx::kOpcode) != devx::kQueryCapabilities) return EREMOTEIO;
    describe_capabilities(devx::get(in, devx::kModifier) >> 1, out);
    return 0;
}

mlx5dv_devx_obj* mlx5dv_devx_obj_create(ibv_context* context, const void* in, size_t, void* out, size_t) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    if (!card.may_make()) return nullptr;
    mlx5dv_devx_obj* made = nullptr;
    switch (devx::get(in, devx::kOpcode)) {
        case devx::kCreateCompletionQueue: made = create_completion_queue(in, out); break;
        case devx::kCreateQueuePair: made = create_queue_pair(in, out); break;
        default: refuse(out, "opcode");
    }
    if (made == nullptr) {
        card.count_removed();
    } else {
        made->context = context;
    }
    return made;
}

int mlx5dv_devx_obj_modify(mlx5dv_devx_obj* object, const void* in, size_t, void* out, size_t) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    QueuePair& queue = *object->queue_pair;
    QueuePair::State to;
    switch (devx::get(in, devx::kOpcode)) {
        case devx::kResetToInit:
            to = QueuePair::State::kInit;
            queue.use(port_of(object->context, static_cast<unsigned>(devx::get(in, devx::kPort))));
            break;
        case devx::kInitToReceive:
            to = QueuePair::State::kReadyToReceive;
            if (card.faults().limited("global-header") && !has_global_header(in)) {
                refuse(out, "path without global header");
                return EREMOTEIO;
            }
            queue.connect(static_cast<uint32_t>(devx::get(in, devx::kPeer)));
            break;
        case devx::kReceiveToSend: to = QueuePair::State::kReadyToSend; break;
        case devx::kToReset: to = QueuePair::State::kReset; break;
        default: refuse(out, "change of a queue pair"); return EREMOTEIO;
    }
    if (to != QueuePair::State::kReset && access_in(in) != 0) queue.allow(access_in(in));
    if (queue.change(to)) return 0;
    say("queue 0x%x cannot go from state %d to %d", object->number, static_cast<int>(queue.state()),
        static_cast<int>(to));
    devx::set(out, devx::kStatus, devx::kBadState);
    return EREMOTEIO;
}

int mlx5dv_devx_obj_destroy(mlx5dv_devx_obj* object) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    if (object->kind == mlx5dv_devx_obj::kQueuePair) {
        card.remove_queue_pair(object->number);
    } else {
        card.remove_completion_queue(object->number);
    }
    card.count_removed();
    delete object;
    return 0;
}

}  // extern "C"
