#include "card.h"

#include <endian.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "gpu.h"
#include "settings.h"

namespace card {

namespace {

constexpr int kPageBytes = 4096;
constexpr int kIdleTurns = 100;
constexpr int kNapMicroseconds = 50;
constexpr int kMostEntriesPerTurn = 8;
constexpr int kTurnsPerRound = 64;
constexpr int kNice = -15;
constexpr auto kReportEvery = std::chrono::milliseconds(50);

std::string text_of(const Counters& c) {
    char line[400];
    std::snprintf(line, sizeof(line),
                  "doorbells=%lu entries=%lu writes=%lu inline=%lu atomics=%lu reads=%lu sends=%lu nops=%lu bytes=%lu "
                  "completions=%lu errors=%lu\n",
                  c.doorbells, c.entries, c.writes, c.inline_writes, c.atomics, c.reads, c.sends, c.nops, c.bytes,
                  c.completions, c.errors);
    return line;
}

}  // namespace

Card& Card::get() {
    static Card& card = *new Card();
    return card;
}

Card::Card()
    : wire_(Settings::get().folder, Settings::get().address),
      memory_(wire_.process()),
      faults_(Settings::get().folder + "/faults", Settings::get().seed * 2047 + wire_.process()) {
    // Registered after those of the libraries that are loaded by now, so it runs before them.
    std::atexit([] { get().stop(); });
    thread_ = std::thread([this] { run(); });
    reporter_ = std::thread([this] { run_reporter(); });
}

bool Card::may_make() {
    if (faults_.refuses()) {
        errno = ENOMEM;
        return false;
    }
    num_objects_++;
    return true;
}

uint32_t Card::new_queue_number() {
    constexpr uint32_t kMost = (1u << kQueueBits) - 1;
    if (queue_pairs_.size() >= kMost) {
        say("there are %u queue pairs already, as many as a process can have", kMost);
        errno = ENOMEM;
        return 0;
    }
    do {
        last_queue_ = last_queue_ % kMost + 1;
    } while (find(queue_pairs_, process() << kQueueBits | last_queue_) != nullptr);
    return process() << kQueueBits | last_queue_;
}

CompletionQueue& Card::add(std::unique_ptr<CompletionQueue> queue) {
    uint32_t number = queue->number();
    return *(completion_queues_[number] = std::move(queue));
}

ReceiveQueue& Card::add_receive_queue() {
    uint32_t number = ++last_receive_queue_;
    return *(receive_queues_[number] = std::make_unique<ReceiveQueue>(ReceiveQueue{number, {}}));
}

QueuePair& Card::add(const QueuePair::Setup& setup) {
    return *(queue_pairs_[setup.number] = std::make_unique<QueuePair>(*this, setup));
}

void Card::remove_queue_pair(uint32_t number) {
    QueuePair* queue = find(queue_pairs_, number);
    if (queue == nullptr) return;
    removed_[queue->port()].add(queue->counters());
    queue_pairs_.erase(number);
    changed_ = true;
}

DoorbellPage& Card::add_doorbell_page(const void* sharers) {
    for (auto& [number, page] : pages_) {
        if (sharers == nullptr || page->sharers != sharers) continue;
        page->num_users++;
        return *page;
    }
    void* page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    uint32_t number = ++last_page_;
    auto made = std::make_unique<DoorbellPage>(DoorbellPage{static_cast<uint64_t*>(page), number, sharers});
    return *(pages_[number] = std::move(made));
}

void Card::remove_doorbell_page(uint32_t number) {
    DoorbellPage* page = find(pages_, number);
    if (page == nullptr || --page->num_users > 0) return;
    munmap(page->address, kPageBytes);
    pages_.erase(number);
}

void Card::forget_doorbells(uint32_t queue) {
    for (auto& [number, page] : pages_) {
        if (static_cast<uint32_t>(be64toh(page->last)) >> 8 != queue) continue;
        page->last = 0;
        __atomic_store_n(page->address, 0, __ATOMIC_RELEASE);
    }
}

void Card::send_when_settled(const std::shared_ptr<Connection>& to, const Frame& frame, const uint8_t* data) {
    ready_.push_back({to, frame, {data, data + frame.num_bytes}});
}

Clock::time_point Card::pace(uint64_t num_bytes) {
    auto time = faults_.duration(num_bytes);
    if (time.count() == 0) return {};
    link_free_ = std::max(link_free_, Clock::now()) + time;
    return link_free_;
}

// A doorbell names its queue: index and number as in the first 8 bytes of an entry.
void Card::look_at_doorbells() {
    for (auto& [number, page] : pages_) {
        uint64_t value = __atomic_load_n(page->address, __ATOMIC_ACQUIRE);
        if (value == page->last) continue;
        page->last = value;
        uint32_t queue = static_cast<uint32_t>(be64toh(value)) >> 8;
        QueuePair* rung = find(queue_pairs_, queue);
        if (rung != nullptr && rung->setup().record != nullptr) {
            rung->ring();
        } else {
            say("a doorbell names queue 0x%x, which does not exist", queue);
        }
    }
}

// A few entries of some queue, then of another: queues have no order among each other.
bool Card::serve(Clock::time_point now) {
    std::vector<QueuePair*> ready;
    for (auto& [number, queue] : queue_pairs_) {
        if (queue->has_work(now)) ready.push_back(queue.get());
    }
    bool busy = !ready.empty();
    for (int turn = 0; turn < kTurnsPerRound && !ready.empty(); turn++) {
        size_t chosen = faults_.random(ready.size());
        QueuePair& queue = *ready[chosen];
        for (uint64_t i = faults_.random(kMostEntriesPerTurn) + 1; i > 0 && queue.has_work(now); i--) {
            queue.execute(now);
        }
        if (!queue.has_work(now)) ready.erase(ready.begin() + static_cast<long>(chosen));
    }
    return busy;
}

bool Card::settle_held(Clock::time_point now) {
    bool held = false;
    for (auto& [number, queue] : queue_pairs_) {
        if (!queue->holds()) continue;
        held = true;
        queue->settle(now);
    }
    return held;
}

// What answers vouch for is in place, and in the GPU's memory seen by its kernels.
void Card::send_answers() {
    if (ready_.empty()) return;
    gpu::settle();
    for (Ready& ready : ready_) {
        ready.to->send(ready.frame, ready.data.data());
        ready.to->flush();
    }
    ready_.clear();
}

bool Card::work() {
    auto now = Clock::now();
    faults_.refresh(now);
    look_at_doorbells();
    bool busy = serve(now);
    busy |= settle_held(now);
    send_answers();
    changed_ |= busy;
    idle_ = !busy;
    return busy;
}

void Card::run() {
    pthread_setname_np(pthread_self(), "software-card");
    prctl(PR_SET_TIMERSLACK, 1000);
    // A card does not wait for its turn behind all the ranks that wait for it. Where that is not allowed, it does.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
    Wire::Handler handler{
        [this](const std::shared_ptr<Connection>& from, const Frame& frame, const uint8_t* data) {
            std::lock_guard guard(lock_);
            changed_ = true;
            QueuePair* queue = find(queue_pairs_, frame.to_queue);
            if (queue != nullptr) {
                queue->take_request(from, frame, data);
            } else if (frame.is_last) {
                Frame answer{};
                answer.kind = FrameKind::kAnswer;
                answer.to_queue = frame.from_queue;
                answer.sequence = frame.sequence;
                answer.status = IBV_WC_RETRY_EXC_ERR;
                answer.is_last = 1;
                from->send(answer, nullptr);
            }
        },
        [this](const Frame& frame, const uint8_t* data) {
            std::lock_guard guard(lock_);
            changed_ = true;
            QueuePair* queue = find(queue_pairs_, frame.to_queue);
            if (queue != nullptr) queue->take_answer(frame, data);
        },
        [this](unsigned process) {
            std::lock_guard guard(lock_);
            for (auto& [number, queue] : queue_pairs_) queue->lose_peer(process);
        },
    };
    for (int idle = 0; !stopped_;) {
        bool busy;
        {
            std::lock_guard guard(lock_);
            busy = work();
        }
        busy |= wire_.turn(handler, busy || idle < kIdleTurns ? 0 : kNapMicroseconds);
        idle = busy ? 0 : idle + 1;
    }
}

void Card::stop() {
    if (stopped_.exchange(true)) return;
    for (std::thread* thread : {&thread_, &reporter_}) {
        if (thread->joinable() && thread->get_id() != std::this_thread::get_id()) thread->join();
    }
    std::lock_guard guard(lock_);
    write(report());
    wire_.leave();
}

// Beside the thread that carries, because a busy disk may keep a writer for many seconds.
void Card::run_reporter() {
    while (!stopped_) {
        std::this_thread::sleep_for(kReportEvery);
        std::string text;
        {
            std::lock_guard guard(lock_);
            if (idle_ && changed_) text = report();
        }
        if (!text.empty()) write(text);
    }
}

std::string Card::report() {
    changed_ = false;
    const char* rank = std::getenv("RANK");
    auto ports = removed_;
    for (auto& [number, queue] : queue_pairs_) ports[queue->port()].add(queue->counters());
    Counters sum;
    std::string text;
    for (auto& [name, counters] : ports) {
        sum.add(counters);
        if (counters.entries > 0) text += "port " + name + " " + text_of(counters);
    }
    char head[200];
    std::snprintf(head, sizeof(head), "process=%u rank=%s pid=%d received_bytes=%lu received_writes=%lu\n", process(),
                  rank == nullptr ? "-" : rank, getpid(), received_bytes_, received_writes_);
    return head + ("sum " + text_of(sum)) + text;
}

void Card::write(const std::string& report) const {
    std::string file = Settings::get().folder + "/counters-" + std::to_string(process());
    std::string part = file + ".part";
    std::ofstream(part) << report;
    std::rename(part.c_str(), file.c_str());
}

}  // namespace card
