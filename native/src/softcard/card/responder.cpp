// The side of a queue pair that does what a peer asks for.
#include <endian.h>

#include <algorithm>
#include <cstring>

#include "card.h"
#include "gpu.h"
#include "settings.h"

namespace card {

namespace {

constexpr uint64_t kSliceBytes = 256 << 10;
// One of so many writes that may be overtaken is.
constexpr uint64_t kHoldOneOf = 4;

}  // namespace

void QueuePair::take_request(const std::shared_ptr<Connection>& from, const Frame& frame, const uint8_t* data) {
    bool ready = state_ == State::kReadyToReceive || state_ == State::kReadyToSend;
    // What comes to one that was reset may be from before.
    if (!was_reset_ && (state_ == State::kReset || state_ == State::kInit)) {
        bool has_data = frame.operation != Operation::kRead;
        early_.push_back({from, frame, {data, data + (has_data ? frame.num_bytes : 0)}});
        return;
    }
    bool known = setup_.kind == Kind::kDynamicTarget ? frame.dc != 0 && frame.dc_key == setup_.dc_key
                                                     : frame.from_queue == peer_;
    if (!ready || !known) {
        if (frame.is_last) answer(from, frame, IBV_WC_RETRY_EXC_ERR, {});
        return;
    }
    std::vector<uint8_t> result;
    ibv_wc_status status = perform(frame, data, result);
    if (status != IBV_WC_SUCCESS) {
        say("queue 0x%x refuses operation %d of %u bytes at 0x%lx with key 0x%x: %s", setup_.number,
            static_cast<int>(frame.operation), frame.num_bytes, frame.address, frame.key, ibv_wc_status_str(status));
        if (setup_.kind == Kind::kConnected) state_ = State::kError;
        answer(from, frame, status, {});
    } else if (frame.is_last) {
        answer(from, frame, status, std::move(result));
    }
}

ibv_wc_status QueuePair::perform(const Frame& frame, const uint8_t* data, std::vector<uint8_t>& result) {
    bool plain_write = frame.operation == Operation::kWrite && !frame.has_immediate;
    if (!plain_write) settle(Clock::time_point::max());
    switch (frame.operation) {
        case Operation::kWrite: {
            ibv_wc_status status = perform_write(frame, data);
            if (status != IBV_WC_SUCCESS || !frame.has_immediate || !frame.is_last) return status;
            return perform_receive(frame, nullptr);
        }
        case Operation::kSend: return perform_receive(frame, data);
        case Operation::kRead: {
            const Region* region = card_.memory().find(frame.key, setup_.domain, frame.address, frame.num_bytes,
                                                       IBV_ACCESS_REMOTE_READ);
            if (region == nullptr || (access_ & IBV_ACCESS_REMOTE_READ) == 0) return IBV_WC_REM_ACCESS_ERR;
            result.resize(frame.num_bytes);
            return region->read(result.data(), frame.address, frame.num_bytes) ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR;
        }
        case Operation::kCompareSwap:
        case Operation::kFetchAdd: return perform_atomic(frame, result);
        default: return IBV_WC_REM_INV_REQ_ERR;
    }
}

// A write to memory that was registered for relaxed ordering may be held back while later ones take place.
ibv_wc_status QueuePair::perform_write(const Frame& frame, const uint8_t* data) {
    if (frame.num_bytes == 0) return IBV_WC_SUCCESS;
    const Region* region =
        card_.memory().find(frame.key, setup_.domain, frame.address, frame.num_bytes, IBV_ACCESS_REMOTE_WRITE);
    if (region == nullptr || (access_ & IBV_ACCESS_REMOTE_WRITE) == 0) return IBV_WC_REM_ACCESS_ERR;
    card_.count_received(frame.num_bytes);
    bool relaxed = (region->access & IBV_ACCESS_RELAXED_ORDERING) != 0 && Settings::get().relaxed_ordering;
    if (relaxed && card_.faults().random(kHoldOneOf) == 0) {
        held_.push_back({frame.key, frame.address, {data, data + frame.num_bytes}, frame.sequence,
                         Clock::now() + card_.faults().hold()});
    } else if (!region->write(frame.address, data, frame.num_bytes)) {
        return IBV_WC_REM_OP_ERR;
    }
    return IBV_WC_SUCCESS;
}

ibv_wc_status QueuePair::perform_atomic(const Frame& frame, std::vector<uint8_t>& result) {
    uint32_t size = frame.atomic.num_bytes;
    const Region* region =
        card_.memory().find(frame.key, setup_.domain, frame.address, size, IBV_ACCESS_REMOTE_ATOMIC);
    if (region == nullptr || (access_ & IBV_ACCESS_REMOTE_ATOMIC) == 0) return IBV_WC_REM_ACCESS_ERR;
    if (frame.address % size != 0) return IBV_WC_REM_INV_REQ_ERR;
    uint64_t old = 0;
    if (!region->read(&old, frame.address, size)) return IBV_WC_REM_OP_ERR;
    uint64_t changed = frame.atomic.apply(frame.operation, old);
    if (!region->write(frame.address, &changed, size)) return IBV_WC_REM_OP_ERR;
    result.resize(size);
    uint32_t swapped = htobe32(static_cast<uint32_t>(old));
    std::memcpy(result.data(), frame.atomic.big_endian_result ? static_cast<void*>(&swapped) : &old, size);
    return IBV_WC_SUCCESS;
}

ibv_wc_status QueuePair::perform_receive(const Frame& frame, const uint8_t* data) {
    if (setup_.receives == nullptr || setup_.receives->entries.empty()) return IBV_WC_RNR_RETRY_EXC_ERR;
    ReceiveQueue::Entry entry = setup_.receives->entries.front();
    setup_.receives->entries.pop_front();
    if (data != nullptr) {
        if (frame.num_bytes > entry.segment.num_bytes) return IBV_WC_REM_INV_REQ_ERR;
        const Region* region = card_.memory().find(entry.segment.key, setup_.domain, entry.segment.address,
                                                   frame.num_bytes, IBV_ACCESS_LOCAL_WRITE);
        if (region == nullptr || !region->write(entry.segment.address, data, frame.num_bytes)) return IBV_WC_REM_OP_ERR;
    }
    gpu::settle();
    setup_.receive_completions->push({nullptr, entry.id, setup_.number, IBV_WC_SUCCESS, frame.num_bytes,
                                      frame.has_immediate != 0, frame.immediate});
    return IBV_WC_SUCCESS;
}

void QueuePair::settle(Clock::time_point now) {
    std::erase_if(held_, [&](const Held& held) {
        if (held.until > now) return false;
        const Region* region =
            card_.memory().find(held.key, setup_.domain, held.address, held.data.size(), IBV_ACCESS_REMOTE_WRITE);
        if (region != nullptr) region->write(held.address, held.data.data(), held.data.size());
        return true;
    });
    release_answers();
}

void QueuePair::answer(const std::shared_ptr<Connection>& to, const Frame& request, ibv_wc_status status,
                       std::vector<uint8_t> data) {
    Frame frame{};
    frame.kind = FrameKind::kAnswer;
    frame.operation = request.operation;
    frame.to_queue = request.from_queue;
    frame.from_queue = setup_.number;
    frame.sequence = request.sequence;
    frame.status = status;
    answers_.push_back({to, frame, std::move(data)});
    release_answers();
}

// In order, and not before what they vouch for: the card sends them once the GPU's memory is settled.
void QueuePair::release_answers() {
    while (!answers_.empty()) {
        Answer& first = answers_.front();
        bool waits = std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
            return static_cast<int32_t>(held.sequence - first.frame.sequence) <= 0;
        });
        if (waits) return;
        for (uint64_t offset = 0; offset == 0 || offset < first.data.size(); offset += kSliceBytes) {
            Frame slice = first.frame;
            uint64_t size = std::min(first.data.size() - offset, kSliceBytes);
            slice.address = offset;
            slice.num_bytes = static_cast<uint32_t>(size);
            slice.is_last = offset + size == first.data.size();
            card_.send_when_settled(first.to, slice, first.data.data() + offset);
        }
        answers_.pop_front();
    }
}

}  // namespace card
