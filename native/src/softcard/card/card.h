// The card of this process: all its objects, and the thread that works for them. Devices and ports of a process share
// it; they differ in name only.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "completion_queue.h"
#include "faults.h"
#include "memory.h"
#include "queue_pair.h"
#include "wire.h"

namespace card {

// A page that a user writes doorbells to.
struct DoorbellPage {
    uint64_t* address;
    uint32_t number;
    const void* sharers = nullptr;  // null: it has one user
    int num_users = 1;
    uint64_t last = 0;
};

class Card {
  public:
    // Made when the first device is opened; never destroyed, because its thread may outlive what the process cleans up.
    static Card& get();

    // Numbers of queues say whose they are.
    static unsigned process_of(uint32_t queue) { return queue >> kQueueBits; }
    unsigned process() const { return wire_.process(); }

    // Everything below: with this lock. The thread holds it while it works, but not while it waits.
    std::mutex& lock() { return lock_; }

    // Counts what users make; false if a fault says that this call fails.
    bool may_make();
    void count_removed() { num_objects_--; }
    int num_objects() const { return num_objects_; }

    uint32_t new_domain() { return ++last_domain_; }
    Memory& memory() { return memory_; }
    Faults& faults() { return faults_; }

    CompletionQueue& add(std::unique_ptr<CompletionQueue> queue);
    CompletionQueue* completion_queue(uint32_t number) { return find(completion_queues_, number); }
    void remove_completion_queue(uint32_t number) { completion_queues_.erase(number); }
    uint32_t new_completion_queue_number() { return ++last_completion_queue_; }

    ReceiveQueue& add_receive_queue();
    ReceiveQueue* receive_queue(uint32_t number) { return find(receive_queues_, number); }
    void remove_receive_queue(uint32_t number) { receive_queues_.erase(number); }

    uint32_t new_queue_number();  // the one that was not used for longest; 0 if there is none
    QueuePair& add(const QueuePair::Setup& setup);
    void remove_queue_pair(uint32_t number);

    DoorbellPage& add_doorbell_page(const void* sharers);  // a new one, or that of these sharers
    void remove_doorbell_page(uint32_t number);
    void forget_doorbells(uint32_t queue);  // the next one may have the same value as the last

    // For queue pairs.
    Connection* reach(uint32_t queue) { return wire_.to(process_of(queue)); }
    void send_when_settled(const std::shared_ptr<Connection>& to, const Frame& frame, const uint8_t* data);
    Clock::time_point pace(uint64_t num_bytes);  // when the next entry may follow
    void count_received(uint64_t num_bytes) { received_bytes_ += num_bytes, received_writes_++; }

    void stop();

  private:
    static constexpr int kQueueBits = 24 - kProcessBits;

    Card();
    void run();
    bool work();
    void look_at_doorbells();
    bool serve(Clock::time_point now);
    bool settle_held(Clock::time_point now);
    void send_answers();
    void run_reporter();
    std::string report();  // what all have done
    void write(const std::string& report) const;

    template <typename T>
    static T* find(std::map<uint32_t, std::unique_ptr<T>>& all, uint32_t number) {
        auto found = all.find(number);
        return found == all.end() ? nullptr : found->second.get();
    }

    std::mutex lock_;
    Wire wire_;
    Memory memory_;
    Faults faults_;
    std::map<uint32_t, std::unique_ptr<CompletionQueue>> completion_queues_;
    std::map<uint32_t, std::unique_ptr<ReceiveQueue>> receive_queues_;
    std::map<uint32_t, std::unique_ptr<QueuePair>> queue_pairs_;
    std::map<uint32_t, std::unique_ptr<DoorbellPage>> pages_;
    int num_objects_ = 0;
    uint32_t last_domain_ = 0, last_completion_queue_ = 0, last_receive_queue_ = 0, last_queue_ = 0, last_page_ = 0;

    struct Ready {
        std::shared_ptr<Connection> to;
        Frame frame;
        std::vector<uint8_t> data;
    };
    std::vector<Ready> ready_;
    Clock::time_point link_free_{};
    uint64_t received_bytes_ = 0, received_writes_ = 0;
    std::map<std::string, Counters> removed_;  // of queue pairs that are gone, by port
    bool changed_ = true;  // since the last report
    bool idle_ = false;

    std::atomic<bool> stopped_{false};
    std::thread thread_, reporter_;
};

}  // namespace card
