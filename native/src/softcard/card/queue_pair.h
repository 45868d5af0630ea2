// A queue pair: its send queue as requester, and what peers ask of it as responder.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "completion_queue.h"
#include "counters.h"
#include "faults.h"
#include "memory.h"
#include "wire.h"
#include "work.h"

namespace card {

class Card;

// Entries of receive queues, which queue pairs share.
struct ReceiveQueue {
    uint32_t number;
    struct Entry {
        uint64_t id;
        Segment segment;
    };
    std::deque<Entry> entries;
};

class QueuePair {
  public:
    enum class Kind { kConnected, kDynamicInitiator, kDynamicTarget };
    enum class State { kReset, kInit, kReadyToReceive, kReadyToSend, kError };

    struct Setup {
        uint32_t number = 0;
        uint32_t domain = 0;
        Kind kind = Kind::kConnected;
        CompletionQueue* send_completions = nullptr;
        CompletionQueue* receive_completions = nullptr;
        ReceiveQueue* receives = nullptr;
        uint32_t max_posted = 0;           // verbs
        EntryRing ring{};                  // mlx5; no blocks: entries are posted by verbs
        const uint32_t* record = nullptr;  // mlx5: doorbell record; its second word says how far the ring is written
        uint64_t dc_key = 0;
    };

    QueuePair(Card& card, const Setup& setup) : card_(card), setup_(setup) {}

    // Only the next state, or back to the beginning, or to the error state; false if the change is not allowed.
    bool change(State to);
    State state() const { return state_; }
    void connect(uint32_t peer) { peer_ = peer; }
    void allow(unsigned access) { access_ = access; }
    void use(const std::string& port) { port_ = port; }
    const std::string& port() const { return port_; }

    // Requester.
    bool post(Work work);  // false if there is no room
    void ring();           // its doorbell was rung
    bool has_work(Clock::time_point now) const;
    void execute(Clock::time_point now);  // one slice of an entry
    void take_answer(const Frame& frame, const uint8_t* data);
    void lose_peer(unsigned process);

    // Responder.
    void take_request(const std::shared_ptr<Connection>& from, const Frame& frame, const uint8_t* data);
    void settle(Clock::time_point now);  // writes that were held back until then
    bool holds() const { return !held_.empty(); }

    const Setup& setup() const { return setup_; }
    const Counters& counters() const { return counters_; }
    uint32_t peer() const { return peer_; }

  private:
    struct Pending {
        Work work;
        uint32_t sequence;
        uint32_t to;
        bool done;
    };
    struct Held {
        uint32_t key;
        uint64_t address;
        std::vector<uint8_t> data;
        uint32_t sequence;
        Clock::time_point until;
    };
    struct Arrived {
        std::shared_ptr<Connection> from;
        Frame frame;
        std::vector<uint8_t> data;
    };
    struct Answer {
        std::shared_ptr<Connection> to;
        Frame frame;
        std::vector<uint8_t> data;
    };

    bool fetch(Clock::time_point now);
    ibv_wc_status gather(uint64_t offset, uint64_t num_bytes, std::vector<uint8_t>& out) const;
    bool scatter(const Work& work, uint64_t offset, const uint8_t* data, uint64_t num_bytes) const;
    void send_slice(Connection& connection);
    Frame request_frame() const;
    void complete_front(ibv_wc_status status);
    void complete_done();
    void fail(ibv_wc_status status);
    void forget();

    ibv_wc_status perform(const Frame& frame, const uint8_t* data, std::vector<uint8_t>& result);
    ibv_wc_status perform_write(const Frame& frame, const uint8_t* data);
    ibv_wc_status perform_atomic(const Frame& frame, std::vector<uint8_t>& result);
    ibv_wc_status perform_receive(const Frame& frame, const uint8_t* data);
    void answer(const std::shared_ptr<Connection>& to, const Frame& request, ibv_wc_status status,
                std::vector<uint8_t> data);
    void release_answers();

    Card& card_;
    const Setup setup_;
    State state_ = State::kReset;
    bool was_reset_ = false;
    uint32_t peer_ = 0;
    unsigned access_ = 0;
    std::string port_ = "none";
    Counters counters_;

    std::deque<Work> posted_;
    uint32_t fetched_ = 0, written_ = 0;  // blocks of the ring
    std::unique_ptr<Work> current_;       // being sent
    uint64_t current_sent_ = 0;
    bool current_wrong_key_ = false;
    Clock::time_point not_before_{}, unreachable_since_{};
    uint32_t next_sequence_ = 0;
    std::deque<Pending> pending_;

    std::vector<Held> held_;
    std::deque<Answer> answers_;
    std::deque<Arrived> early_;  // before this side was ready
};

}  // namespace card
