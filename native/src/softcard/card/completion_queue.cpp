#include "completion_queue.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>

#include <bit>
#include <cstring>

#include "settings.h"

namespace card {

namespace {

constexpr uint32_t kEntryBytes = sizeof(mlx5_cqe64);

// mlx5's name of what went wrong.
uint8_t syndrome_of(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_LOC_LEN_ERR: return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
        case IBV_WC_LOC_PROT_ERR: return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
        case IBV_WC_WR_FLUSH_ERR: return MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
        case IBV_WC_REM_INV_REQ_ERR: return MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR;
        case IBV_WC_REM_ACCESS_ERR: return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
        case IBV_WC_REM_OP_ERR: return MLX5_CQE_SYNDROME_REMOTE_OP_ERR;
        case IBV_WC_RETRY_EXC_ERR: return MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
        case IBV_WC_RNR_RETRY_EXC_ERR: return MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR;
        default: return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
}

ibv_wc_opcode verbs_opcode(const Work* work) {
    if (work == nullptr) return IBV_WC_RECV;
    switch (work->operation) {
        case Operation::kRead: return IBV_WC_RDMA_READ;
        case Operation::kSend: return IBV_WC_SEND;
        case Operation::kCompareSwap: return IBV_WC_COMP_SWAP;
        case Operation::kFetchAdd: return IBV_WC_FETCH_ADD;
        default: return IBV_WC_RDMA_WRITE;
    }
}

}  // namespace

CompletionQueue::CompletionQueue(uint32_t number, uint32_t num_entries)
    : number_(number), num_entries_(std::bit_ceil(num_entries)), collapsed_(false) {}

CompletionQueue::CompletionQueue(uint32_t number, uint8_t* ring, uint32_t num_entries, bool collapsed)
    : number_(number), num_entries_(num_entries), collapsed_(collapsed), ring_(ring) {}

uint8_t* CompletionQueue::expose_ring() {
    if (ring_ == nullptr) {
        own_ring_.resize((num_entries_ + 1ul) * kEntryBytes);
        auto start = reinterpret_cast<uintptr_t>(own_ring_.data());
        ring_ = own_ring_.data() + (kEntryBytes - start % kEntryBytes) % kEntryBytes;
        for (uint32_t i = 0; i < num_entries_; i++) ring_[i * kEntryBytes + kEntryBytes - 1] = MLX5_CQE_INVALID << 4;
    }
    return ring_;
}

void CompletionQueue::push(const Completion& completion) {
    if (ring_ != nullptr) {
        write(completion);
    } else if (waiting_.size() >= num_entries_) {
        say("completion queue %u of %u entries is full: a completion is lost", number_, num_entries_);
    } else {
        ibv_wc out{};
        out.wr_id = completion.id;
        out.status = completion.status;
        out.opcode = completion.work == nullptr && completion.has_immediate ? IBV_WC_RECV_RDMA_WITH_IMM
                                                                             : verbs_opcode(completion.work);
        out.byte_len = completion.num_bytes;
        out.qp_num = completion.queue;
        out.imm_data = completion.immediate;
        out.wc_flags = completion.has_immediate ? IBV_WC_WITH_IMM : 0;
        waiting_.push_back(out);
    }
    pushed_++;
}

void CompletionQueue::write(const Completion& completion) {
    uint64_t slot = collapsed_ ? 0 : pushed_ & (num_entries_ - 1);
    auto* entry = reinterpret_cast<mlx5_cqe64*>(ring_ + slot * kEntryBytes);
    bool ok = completion.status == IBV_WC_SUCCESS;
    uint8_t opcode = completion.work != nullptr ? completion.work->opcode : 0;
    uint8_t kind = completion.work == nullptr ? (ok ? MLX5_CQE_RESP_SEND : MLX5_CQE_RESP_ERR)
                                              : (ok ? MLX5_CQE_REQ : MLX5_CQE_REQ_ERR);
    if (ok) {
        entry->byte_cnt = htobe32(completion.num_bytes);
    } else {
        auto* error = reinterpret_cast<mlx5_err_cqe*>(entry);
        error->vendor_err_synd = 0;
        error->syndrome = syndrome_of(completion.status);
    }
    uint8_t owner = collapsed_ ? 0 : (pushed_ / num_entries_) & 1;
    struct {
        uint32_t opcode_and_queue;
        uint16_t index;
        uint8_t signature;
        uint8_t kind_and_owner;
    } last{htobe32(static_cast<uint32_t>(opcode) << 24 | completion.queue),
           htobe16(completion.work != nullptr ? completion.work->index : 0), 0,
           static_cast<uint8_t>(kind << 4 | owner)};
    uint64_t word;
    std::memcpy(&word, &last, sizeof(word));
    // release; pairs with the user's read of the index or the owner bit. In one piece, as a card writes it
    __atomic_store_n(reinterpret_cast<uint64_t*>(&entry->sop_drop_qpn), word, __ATOMIC_RELEASE);
}

int CompletionQueue::poll(int num_entries, ibv_wc* out) {
    int taken = 0;
    for (; taken < num_entries && !waiting_.empty(); taken++) {
        out[taken] = waiting_.front();
        waiting_.pop_front();
    }
    return taken;
}

}  // namespace card
