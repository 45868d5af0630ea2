// The side of a queue pair that sends.
#include <endian.h>

#include <algorithm>
#include <cstring>

#include "card.h"
#include "gpu.h"
#include "settings.h"

namespace card {

namespace {

// Of a long entry; queues take turns between slices.
constexpr uint64_t kSliceBytes = 256 << 10;
// Unsent bytes of a connection at which queues wait.
constexpr size_t kMaxUnsent = 4 << 20;

}  // namespace

bool QueuePair::change(State to) {
    bool next = static_cast<int>(to) == static_cast<int>(state_) + 1 && to != State::kError;
    if (!next && to != State::kReset && to != State::kError) return false;
    state_ = to;
    if (to == State::kReset) {
        forget();
        card_.forget_doorbells(setup_.number);
    }
    if (to == State::kError && !pending_.empty()) fail(IBV_WC_WR_FLUSH_ERR);
    if (to == State::kReadyToReceive) {
        std::deque<Arrived> early;
        early.swap(early_);
        for (Arrived& arrived : early) take_request(arrived.from, arrived.frame, arrived.data.data());
    }
    return true;
}

// What was asked for is not done, or not answered.
void QueuePair::forget() {
    posted_.clear();
    current_.reset();
    pending_.clear();
    held_.clear();
    answers_.clear();
    early_.clear();
    fetched_ = written_ = 0;
    peer_ = 0;
    not_before_ = unreachable_since_ = {};
    // Answers that are still under way name none of those to come.
    next_sequence_ += 1u << 16;
    was_reset_ = true;
}

bool QueuePair::post(Work work) {
    if (posted_.size() + pending_.size() >= setup_.max_posted) return false;
    posted_.push_back(std::move(work));
    counters_.doorbells++;
    return true;
}

void QueuePair::ring() {
    counters_.doorbells++;
    // acquire; pairs with the user's release of the record, which comes after the entries
    uint32_t record = be32toh(__atomic_load_n(setup_.record + 1, __ATOMIC_ACQUIRE));
    written_ += (record - written_) & 0xffff;
    if (written_ - fetched_ > setup_.ring.num_blocks) {
        say("queue 0x%x: record says %u, but %u of %u blocks are not executed", setup_.number, record,
            written_ - fetched_, setup_.ring.num_blocks);
        fetched_ = written_;
        fail(IBV_WC_LOC_QP_OP_ERR);
    }
}

bool QueuePair::has_work(Clock::time_point now) const {
    return now >= not_before_ && (current_ != nullptr || !posted_.empty() || fetched_ != written_);
}

// The next entry becomes the current one; false if there is none, or it must wait.
bool QueuePair::fetch(Clock::time_point now) {
    if (current_ != nullptr) return true;
    auto work = std::make_unique<Work>();
    std::string error;
    if (setup_.ring.blocks == nullptr) {
        if (posted_.empty()) return false;
        *work = std::move(posted_.front());
        posted_.pop_front();
    } else {
        if (fetched_ == written_) return false;
        if (!setup_.ring.decode(fetched_, setup_.number, *work, error)) {
            say("queue 0x%x: %s", setup_.number, error.c_str());
            work->num_blocks = 1;
        }
        fetched_ += work->num_blocks;
    }
    counters_.count(*work);
    Faults::Verdict verdict = card_.faults().next(setup_.number, work->operation != Operation::kNop);
    not_before_ = std::max(now + verdict.wait, not_before_);
    current_ = std::move(work);
    current_sent_ = 0;
    current_wrong_key_ = verdict.wrong_key;
    if (!error.empty()) verdict.status = IBV_WC_LOC_QP_OP_ERR;
    if (state_ == State::kError || verdict.status != IBV_WC_SUCCESS) {
        fail(state_ == State::kError ? IBV_WC_WR_FLUSH_ERR : verdict.status);
        return false;
    }
    return now >= not_before_;
}

void QueuePair::execute(Clock::time_point now) {
    if (state_ != State::kReadyToSend && state_ != State::kError) {
        say("queue 0x%x was given work before it was connected", setup_.number);
        change(State::kError);
    }
    if (!fetch(now)) return;
    uint32_t to = setup_.kind == Kind::kConnected ? peer_ : current_->dc_queue;
    Connection* connection = card_.faults().port_up(port_) ? card_.reach(to) : nullptr;
    if (current_->operation == Operation::kNop) {
        pending_.push_back({std::move(*current_), next_sequence_++, to, true});
        current_.reset();
        complete_done();
        return;
    }
    if (connection == nullptr) {
        if (unreachable_since_ == Clock::time_point{}) unreachable_since_ = now;
        bool over = now - unreachable_since_ > std::chrono::milliseconds(Settings::get().retry_milliseconds);
        if (over) fail(IBV_WC_RETRY_EXC_ERR);
        not_before_ = now + std::chrono::milliseconds(1);
        return;
    }
    unreachable_since_ = {};
    if (connection->unsent() < kMaxUnsent) send_slice(*connection);
}

Frame QueuePair::request_frame() const {
    Frame frame{};
    frame.kind = FrameKind::kRequest;
    frame.operation = current_->operation;
    frame.has_immediate = current_->has_immediate;
    frame.immediate = current_->immediate;
    frame.to_queue = setup_.kind == Kind::kConnected ? peer_ : current_->dc_queue;
    frame.from_queue = setup_.number;
    frame.sequence = next_sequence_;
    frame.key = current_wrong_key_ ? ~current_->remote_key : current_->remote_key;
    frame.address = current_->remote_address + current_sent_;
    frame.dc = setup_.kind != Kind::kConnected;
    frame.dc_key = current_->dc_key;
    frame.atomic = current_->atomic;
    return frame;
}

void QueuePair::send_slice(Connection& connection) {
    Frame frame = request_frame();
    uint64_t total = current_->num_bytes(), size = 0;
    std::vector<uint8_t> data;
    bool carries = current_->operation == Operation::kWrite || current_->operation == Operation::kSend;
    if (carries) {
        size = std::min(total - current_sent_, kSliceBytes);
        ibv_wc_status status = gather(current_sent_, size, data);
        if (status != IBV_WC_SUCCESS) {
            fail(status);
            return;
        }
    }
    frame.num_bytes = static_cast<uint32_t>(current_->operation == Operation::kRead ? total : size);
    current_sent_ += carries ? size : total;
    frame.is_last = current_sent_ == total;
    connection.send(frame, carries ? data.data() : nullptr);
    not_before_ = card_.pace(size);
    if (frame.is_last) {
        pending_.push_back({std::move(*current_), next_sequence_++, frame.to_queue, false});
        current_.reset();
    }
}

// What the entry sends, from that offset on.
ibv_wc_status QueuePair::gather(uint64_t offset, uint64_t num_bytes, std::vector<uint8_t>& out) const {
    if (current_->is_inline) {
        out.assign(current_->data.begin() + static_cast<long>(offset),
                   current_->data.begin() + static_cast<long>(offset + num_bytes));
        return IBV_WC_SUCCESS;
    }
    out.resize(num_bytes);
    uint64_t filled = 0;
    for (const Segment& segment : current_->segments) {
        if (offset >= segment.num_bytes) {
            offset -= segment.num_bytes;
            continue;
        }
        uint64_t part = std::min(segment.num_bytes - offset, num_bytes - filled);
        if (part == 0) break;
        uint64_t address = segment.address + offset;
        const Region* region = card_.memory().find(segment.key, setup_.domain, address, part, 0);
        if (region == nullptr) {
            say("queue 0x%x: local key 0x%x does not cover %lu bytes at 0x%lx", setup_.number, segment.key, part,
                address);
            return IBV_WC_LOC_PROT_ERR;
        }
        if (!region->read(&out[filled], address, part)) return IBV_WC_LOC_ACCESS_ERR;
        filled += part;
        offset = 0;
    }
    return IBV_WC_SUCCESS;
}

// Where the entry wants what it asked for.
bool QueuePair::scatter(const Work& work, uint64_t offset, const uint8_t* data, uint64_t num_bytes) const {
    for (const Segment& segment : work.segments) {
        if (offset >= segment.num_bytes) {
            offset -= segment.num_bytes;
            continue;
        }
        uint64_t part = std::min(segment.num_bytes - offset, num_bytes), address = segment.address + offset;
        const Region* region =
            card_.memory().find(segment.key, setup_.domain, address, part, IBV_ACCESS_LOCAL_WRITE);
        if (region == nullptr || !region->write(address, data, part)) return false;
        data += part, num_bytes -= part, offset = 0;
        if (num_bytes == 0) return true;
    }
    return num_bytes == 0;
}

void QueuePair::take_answer(const Frame& frame, const uint8_t* data) {
    if (pending_.empty() && current_ == nullptr) return;  // all have failed already
    Pending* asked = nullptr;
    for (Pending& pending : pending_) {
        if (pending.sequence == frame.sequence) asked = &pending;
    }
    if (asked == nullptr) {
        // Only a refusal comes before the last slice is sent.
        bool is_current = current_ != nullptr && frame.sequence == next_sequence_;
        if (frame.status != IBV_WC_SUCCESS && is_current) fail(static_cast<ibv_wc_status>(frame.status));
        return;
    }
    if (frame.status != IBV_WC_SUCCESS) {
        fail(static_cast<ibv_wc_status>(frame.status));
        return;
    }
    if (frame.num_bytes > 0 && !scatter(asked->work, frame.address, data, frame.num_bytes)) {
        fail(IBV_WC_LOC_PROT_ERR);
        return;
    }
    asked->done |= frame.is_last != 0;
    complete_done();
}

void QueuePair::complete_done() {
    while (!pending_.empty() && pending_.front().done) complete_front(IBV_WC_SUCCESS);
}

void QueuePair::complete_front(ibv_wc_status status) {
    Pending pending = std::move(pending_.front());
    pending_.pop_front();
    if (status != IBV_WC_SUCCESS) counters_.errors++;
    if (status == IBV_WC_SUCCESS && !pending.work.wants_completion) return;
    gpu::settle();
    counters_.completions++;
    setup_.send_completions->push({&pending.work, pending.work.id, setup_.number, status,
                                   static_cast<uint32_t>(pending.work.num_bytes()), false, 0});
}

// The first entry that is not done fails; those behind it are flushed.
void QueuePair::fail(ibv_wc_status status) {
    state_ = State::kError;
    if (current_ != nullptr) {
        pending_.push_back({std::move(*current_), next_sequence_++, peer_, false});
        current_.reset();
    }
    if (status != IBV_WC_WR_FLUSH_ERR) {
        say("queue 0x%x to 0x%x fails: %s", setup_.number, peer_, ibv_wc_status_str(status));
    }
    for (; !pending_.empty(); status = IBV_WC_WR_FLUSH_ERR) complete_front(status);
}

void QueuePair::lose_peer(unsigned process) {
    bool waits = std::any_of(pending_.begin(), pending_.end(),
                             [&](const Pending& pending) { return Card::process_of(pending.to) == process; });
    if (waits) fail(IBV_WC_RETRY_EXC_ERR);
}

}  // namespace card
