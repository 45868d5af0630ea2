// What the pointers are that users of verbs hold: the public structure, and behind it what the card has.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <string>

#include "../card/card.h"

namespace card {

struct ProtectionDomain : ibv_pd {
    uint32_t number;
};

struct VerbsCompletionQueue : ibv_cq {
    CompletionQueue* own;
};

struct VerbsReceiveQueue : ibv_srq {
    ReceiveQueue* own;
};

struct VerbsQueuePair : ibv_qp {
    QueuePair* own;
};

struct MemoryRegion : ibv_mr {
    uint32_t key;
};

struct AddressHandle : ibv_ah {
    mlx5_wqe_av vector;
};

inline uint32_t domain_of(const ibv_pd* pd) { return static_cast<const ProtectionDomain*>(pd)->number; }

// As "mlx5_0:1".
std::string port_of(const ibv_context* context, unsigned number);

// What a local id of a port says: which process, which device, which port.
uint16_t lid_of(const ibv_context* context, uint8_t port);

// A queue pair made for libmlx5: no entries of its own, but a verbs object.
ibv_qp* wrap(ibv_context* context, ibv_pd* pd, QueuePair& queue, ibv_qp_type type);

}  // namespace card
