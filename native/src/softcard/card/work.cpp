#include "work.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>

#include <cstdio>
#include <cstring>

namespace card {

namespace {

constexpr uint32_t kBlockBytes = MLX5_SEND_WQE_BB;
constexpr uint32_t kSegmentBytes = 16;
constexpr uint32_t kMaxSegments = 63;
constexpr uint8_t kDump = 0x23;
constexpr uint8_t kFourByteAtomic = 0x08, kEightByteAtomic = 0x09;

// Reads segments of one entry, which may wrap around the ring's end.
class Segments {
  public:
    Segments(const EntryRing& ring, uint32_t index, uint32_t num_segments) : bytes_(num_segments * kSegmentBytes) {
        for (uint32_t at = 0; at < bytes_.size(); at += kSegmentBytes) {
            uint32_t block = (index + at / kBlockBytes) & (ring.num_blocks - 1);
            std::memcpy(&bytes_[at], ring.blocks + block * kBlockBytes + at % kBlockBytes, kSegmentBytes);
        }
    }

    template <typename T>
    T take() {
        T value{};
        if (at_ + sizeof(T) > bytes_.size()) {
            overrun_ = true;
            return value;
        }
        std::memcpy(&value, &bytes_[at_], sizeof(T));
        at_ += sizeof(T);
        return value;
    }

    uint32_t left() const { return static_cast<uint32_t>(bytes_.size()) - at_; }
    bool overrun() const { return overrun_; }

  private:
    std::vector<uint8_t> bytes_;
    uint32_t at_ = 0;
    bool overrun_ = false;
};

void take_remote(Segments& segments, Work& work) {
    auto remote = segments.take<mlx5_wqe_raddr_seg>();
    work.remote_address = be64toh(remote.raddr);
    work.remote_key = be32toh(remote.rkey);
}

void take_data(Segments& segments, Work& work) {
    while (segments.left() >= kSegmentBytes) {
        uint32_t left = segments.left();
        auto data = segments.take<mlx5_wqe_data_seg>();
        uint32_t num_bytes = be32toh(data.byte_count);
        if ((num_bytes & MLX5_INLINE_SEG) == 0) {
            work.segments.push_back({be64toh(data.addr), be32toh(data.lkey), num_bytes});
            continue;
        }
        // The data follow the count of 4 bytes, to the end of the entry.
        num_bytes &= ~static_cast<uint32_t>(MLX5_INLINE_SEG);
        work.is_inline = true;
        std::vector<uint8_t> raw(left);
        std::memcpy(raw.data(), &data, sizeof(data));
        for (uint32_t at = sizeof(data); at < left; at += kSegmentBytes) {
            auto more = segments.take<mlx5_wqe_data_seg>();
            std::memcpy(&raw[at], &more, sizeof(more));
        }
        if (num_bytes + sizeof(uint32_t) <= raw.size()) {
            work.data.assign(raw.begin() + sizeof(uint32_t), raw.begin() + sizeof(uint32_t) + num_bytes);
        }
        return;
    }
}

// What the two words of an atomic segment are depends on the size and on whether there are masks.
void take_atomic(Segments& segments, uint8_t opcode, uint8_t modifier, Work& work) {
    Atomic& atomic = work.atomic;
    bool swaps = work.operation == Operation::kCompareSwap;
    bool masked = opcode == MLX5_OPCODE_ATOMIC_MASKED_CS || opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;
    if (masked && modifier == kFourByteAtomic) {
        struct {
            uint32_t words[4];
        } in = segments.take<decltype(in)>();
        atomic.num_bytes = 4;
        atomic.big_endian_result = true;
        atomic.add_or_swap = be32toh(in.words[0]);
        atomic.compare = swaps ? be32toh(in.words[1]) : 0;
        atomic.swap_mask = swaps ? be32toh(in.words[2]) : 0;
        atomic.compare_mask_or_boundary = be32toh(in.words[swaps ? 3 : 1]);
        return;
    }
    auto values = segments.take<mlx5_wqe_atomic_seg>();
    atomic.add_or_swap = be64toh(values.swap_add);
    if (!swaps) {
        atomic.compare_mask_or_boundary = masked ? be64toh(values.compare) : 0;
        return;
    }
    atomic.compare = be64toh(values.compare);
    atomic.compare_mask_or_boundary = ~0ull;
    if (masked) {
        auto masks = segments.take<mlx5_wqe_atomic_seg>();
        atomic.swap_mask = be64toh(masks.swap_add);
        atomic.compare_mask_or_boundary = be64toh(masks.compare);
    }
}

bool operation_of(uint8_t opcode, Work& work) {
    switch (opcode) {
        case MLX5_OPCODE_NOP:
        case kDump: work.operation = Operation::kNop; return true;
        case MLX5_OPCODE_RDMA_WRITE: work.operation = Operation::kWrite; return true;
        case MLX5_OPCODE_RDMA_WRITE_IMM:
            work.operation = Operation::kWrite;
            work.has_immediate = true;
            return true;
        case MLX5_OPCODE_SEND: work.operation = Operation::kSend; return true;
        case MLX5_OPCODE_RDMA_READ: work.operation = Operation::kRead; return true;
        case MLX5_OPCODE_ATOMIC_CS:
        case MLX5_OPCODE_ATOMIC_MASKED_CS: work.operation = Operation::kCompareSwap; return true;
        case MLX5_OPCODE_ATOMIC_FA:
        case MLX5_OPCODE_ATOMIC_MASKED_FA: work.operation = Operation::kFetchAdd; return true;
        default: return false;
    }
}

template <typename... Arguments>
bool fail(std::string& error, const char* format, Arguments... arguments) {
    char text[160];
    std::snprintf(text, sizeof(text), format, arguments...);
    error = text;
    return false;
}

void take_address_vector(Segments& segments, bool compact, Work& work) {
    auto first = segments.take<mlx5_wqe_raddr_seg>();  // 16 bytes: key, queue
    work.dc_key = be64toh(first.raddr);
    work.dc_queue = be32toh(first.rkey) & 0xffffff;
    if (compact) return;
    segments.take<mlx5_wqe_raddr_seg>();
    segments.take<mlx5_wqe_raddr_seg>();
}

}  // namespace

uint64_t Atomic::apply(Operation operation, uint64_t word) const {
    if (operation == Operation::kCompareSwap) {
        bool equal = ((word ^ compare) & compare_mask_or_boundary) == 0;
        return equal ? (word & ~swap_mask) | (add_or_swap & swap_mask) : word;
    }
    // Bits of the boundary take no carry on: each field adds for itself.
    uint64_t sum = 0, carry = 0;
    for (int bit = 0; bit < num_bytes * 8; bit++) {
        uint64_t total = ((word >> bit) & 1) + ((add_or_swap >> bit) & 1) + carry;
        sum |= (total & 1) << bit;
        carry = (compare_mask_or_boundary >> bit) & 1 ? 0 : total >> 1;
    }
    return sum;
}

uint64_t Work::num_bytes() const {
    if (operation == Operation::kCompareSwap || operation == Operation::kFetchAdd) return atomic.num_bytes;
    uint64_t sum = data.size();
    for (const Segment& segment : segments) sum += segment.num_bytes;
    return sum;
}

bool EntryRing::decode(uint32_t index, uint32_t queue, Work& work, std::string& error) const {
    mlx5_wqe_ctrl_seg control;
    std::memcpy(&control, blocks + (index & (num_blocks - 1)) * kBlockBytes, sizeof(control));
    uint32_t first = be32toh(control.opmod_idx_opcode), second = be32toh(control.qpn_ds);
    uint32_t num_segments = second & 0xff;
    work.opcode = first & 0xff;
    work.index = static_cast<uint16_t>(index);
    work.wants_completion = (control.fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE) == MLX5_WQE_CTRL_CQ_UPDATE;
    work.immediate = control.imm;
    if (((first >> 8) & 0xffff) != (index & 0xffff)) {
        return fail(error, "entry %u says that it is number %u", index & 0xffff, (first >> 8) & 0xffff);
    }
    if (second >> 8 != queue) return fail(error, "entry %u names queue 0x%x", index, second >> 8);
    if (num_segments == 0 || num_segments > kMaxSegments) {
        return fail(error, "entry %u has %u segments", index, num_segments);
    }
    if (!operation_of(work.opcode, work)) return fail(error, "opcode 0x%x of entry %u", work.opcode, index);
    work.num_blocks = static_cast<uint16_t>((num_segments * kSegmentBytes + kBlockBytes - 1) / kBlockBytes);
    Segments segments(*this, index, num_segments);
    segments.take<mlx5_wqe_ctrl_seg>();
    if (work.operation == Operation::kNop) return true;
    if (dynamically_connected) take_address_vector(segments, compact_address_vector, work);
    if (work.operation != Operation::kSend) take_remote(segments, work);
    if (work.operation == Operation::kCompareSwap || work.operation == Operation::kFetchAdd) {
        take_atomic(segments, work.opcode, static_cast<uint8_t>(first >> 24), work);
    }
    take_data(segments, work);
    return segments.overrun() ? fail(error, "entry %u ends within a segment", index) : true;
}

}  // namespace card
