// libibverbs.so.1: completion queues, receive queues and queue pairs.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "objects.h"

using namespace card;

namespace {

bool translate(const ibv_send_wr& in, Work& out) {
    switch (in.opcode) {
        case IBV_WR_RDMA_WRITE_WITH_IMM: out.has_immediate = true; [[fallthrough]];
        case IBV_WR_RDMA_WRITE: out.operation = Operation::kWrite; break;
        case IBV_WR_RDMA_READ: out.operation = Operation::kRead; break;
        case IBV_WR_SEND: out.operation = Operation::kSend; break;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            out.operation = Operation::kFetchAdd;
            out.atomic.add_or_swap = in.wr.atomic.compare_add;
            out.atomic.swap_mask = 0;
            break;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            out.operation = Operation::kCompareSwap;
            out.atomic.add_or_swap = in.wr.atomic.swap;
            out.atomic.compare = in.wr.atomic.compare_add;
            out.atomic.compare_mask_or_boundary = ~0ull;
            break;
        default: return false;
    }
    bool atomic = out.operation == Operation::kFetchAdd || out.operation == Operation::kCompareSwap;
    out.remote_address = atomic ? in.wr.atomic.remote_addr : in.wr.rdma.remote_addr;
    out.remote_key = atomic ? in.wr.atomic.rkey : in.wr.rdma.rkey;
    out.id = in.wr_id;
    out.immediate = in.imm_data;
    out.wants_completion = (in.send_flags & IBV_SEND_SIGNALED) != 0;
    out.is_inline = (in.send_flags & IBV_SEND_INLINE) != 0;
    for (int i = 0; i < in.num_sge; i++) {
        const ibv_sge& part = in.sg_list[i];
        if (out.is_inline) {
            const auto* from = reinterpret_cast<const uint8_t*>(part.addr);
            out.data.insert(out.data.end(), from, from + part.length);
        } else {
            out.segments.push_back({part.addr, part.lkey, part.length});
        }
    }
    return true;
}

int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    auto* queue = static_cast<VerbsQueuePair*>(qp)->own;
    for (ibv_send_wr* request = first; request != nullptr; request = request->next) {
        Work work;
        bool known = translate(*request, work);
        if (!known || !queue->post(std::move(work))) {
            *bad = request;
            return known ? ENOMEM : EINVAL;
        }
    }
    return 0;
}

int poll_cq(ibv_cq* cq, int num_entries, ibv_wc* out) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    return static_cast<VerbsCompletionQueue*>(cq)->own->poll(num_entries, out);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr**) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    for (ibv_recv_wr* request = first; request != nullptr; request = request->next) {
        Segment segment{};
        if (request->num_sge > 0) {
            segment = {request->sg_list[0].addr, request->sg_list[0].lkey, request->sg_list[0].length};
        }
        static_cast<VerbsReceiveQueue*>(srq)->own->entries.push_back({request->wr_id, segment});
    }
    return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    if (!card.may_make()) return nullptr;
    auto* pd = new ProtectionDomain{};
    pd->context = context;
    pd->handle = pd->number = domain_of(attributes->pd);  // memory of the parent is its own too
    return pd;
}

QueuePair::State state_of(ibv_qp_state state) {
    switch (state) {
        case IBV_QPS_RESET: return QueuePair::State::kReset;
        case IBV_QPS_INIT: return QueuePair::State::kInit;
        case IBV_QPS_RTR: return QueuePair::State::kReadyToReceive;
        case IBV_QPS_RTS: return QueuePair::State::kReadyToSend;
        default: return QueuePair::State::kError;
    }
}

}  // namespace

namespace card {

void set_operations(verbs_context& context) {
    context.alloc_parent_domain = alloc_parent_domain;
    context.context.ops.post_send = post_send;
    context.context.ops.poll_cq = poll_cq;
    context.context.ops.post_srq_recv = post_srq_recv;
}

ibv_qp* wrap(ibv_context* context, ibv_pd* pd, QueuePair& queue, ibv_qp_type type) {
    auto* qp = new VerbsQueuePair{};
    qp->context = context;
    qp->pd = pd;
    qp->qp_num = qp->handle = queue.setup().number;
    qp->qp_type = type;
    qp->state = IBV_QPS_RESET;
    qp->own = &queue;
    return qp;
}

}  // namespace card

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int num_entries, void*, ibv_comp_channel*, int) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    uint32_t number = card.new_completion_queue_number();
    auto* cq = new VerbsCompletionQueue{};
    cq->own = &card.add(std::make_unique<CompletionQueue>(number, static_cast<uint32_t>(num_entries)));
    cq->context = context;
    cq->handle = number;
    cq->cqe = static_cast<int>(cq->own->num_entries()) - 1;
    return cq;
}

int ibv_destroy_cq(ibv_cq* cq) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    card.remove_completion_queue(cq->handle);
    delete static_cast<VerbsCompletionQueue*>(cq);
    return 0;
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr*) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    auto* srq = new VerbsReceiveQueue{};
    srq->own = &card.add_receive_queue();
    srq->context = pd->context;
    srq->pd = pd;
    srq->handle = srq->own->number;
    return srq;
}

int ibv_destroy_srq(ibv_srq* srq) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    card.remove_receive_queue(srq->handle);
    delete static_cast<VerbsReceiveQueue*>(srq);
    return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
    if (attributes->qp_type != IBV_QPT_RC) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    QueuePair::Setup setup;
    if ((setup.number = card.new_queue_number()) == 0) return nullptr;
    setup.domain = domain_of(pd);
    setup.send_completions = static_cast<VerbsCompletionQueue*>(attributes->send_cq)->own;
    setup.receive_completions = static_cast<VerbsCompletionQueue*>(attributes->recv_cq)->own;
    setup.receives = attributes->srq == nullptr ? nullptr : static_cast<VerbsReceiveQueue*>(attributes->srq)->own;
    setup.max_posted = attributes->cap.max_send_wr;
    return wrap(pd->context, pd, card.add(setup), attributes->qp_type);
}

int ibv_destroy_qp(ibv_qp* qp) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    card.remove_queue_pair(qp->qp_num);
    delete static_cast<VerbsQueuePair*>(qp);
    return 0;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
    Card& card = Card::get();
    std::lock_guard guard(card.lock());
    QueuePair& queue = *static_cast<VerbsQueuePair*>(qp)->own;
    if ((mask & IBV_QP_ACCESS_FLAGS) != 0) queue.allow(attributes->qp_access_flags);
    if ((mask & IBV_QP_PORT) != 0) queue.use(port_of(qp->context, attributes->port_num));
    if ((mask & IBV_QP_DEST_QPN) != 0) queue.connect(attributes->dest_qp_num);
    if ((mask & IBV_QP_STATE) == 0) return 0;
    bool names_peer = (mask & IBV_QP_DEST_QPN) != 0 || queue.setup().kind != QueuePair::Kind::kConnected;
    if (attributes->qp_state == IBV_QPS_RTR && !names_peer) return EINVAL;
    if (!queue.change(state_of(attributes->qp_state))) return EINVAL;
    qp->state = attributes->qp_state;
    return 0;
}

}  // extern "C"
