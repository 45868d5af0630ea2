// The wire between the cards of processes: TCP. Whoever sends requests to a process opens a connection to it; answers
// come back on the same one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "work.h"

namespace card {

// Of a queue's number of 24 bits: those that say whose it is.
constexpr int kProcessBits = 9;

enum class FrameKind : uint8_t { kRequest, kAnswer };

// What precedes the bytes of a frame. All machines of a network have the same byte order.
struct Frame {
    uint32_t magic;
    FrameKind kind;
    Operation operation;
    uint8_t is_last;           // slice of its request or answer
    uint8_t has_immediate;
    uint32_t to_queue;
    uint32_t from_queue;
    uint32_t sequence;         // of the request in its queue
    uint32_t key;
    uint64_t address;
    uint32_t num_bytes;        // that follow; of a request to read, those asked for
    uint32_t immediate;
    int32_t status;            // of an answer: ibv_wc_status
    uint32_t dc;               // of a request: to a dynamically connected target
    uint64_t dc_key;
    Atomic atomic;
};

class Connection {
  public:
    explicit Connection(int socket) : socket_(socket) {}
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void send(const Frame& frame, const void* data);
    size_t unsent() const { return out_.size() - sent_; }

    // Both return false once the other side is gone.
    bool flush();
    bool receive(const std::function<void(const Frame&, const uint8_t*)>& take);

    int socket() const { return socket_; }

  private:
    bool read_some();

    const int socket_;
    std::vector<uint8_t> out_, in_;
    size_t sent_ = 0, taken_ = 0, filled_ = 0;
};

// Where the processes of a network are: a file in the folder for each, named by its number.
class Wire {
  public:
    Wire(const std::string& folder, const std::string& address);

    unsigned process() const { return process_; }

    // The connection for requests to a process; null where nobody listens.
    Connection* to(unsigned process);

    struct Handler {
        std::function<void(const std::shared_ptr<Connection>&, const Frame&, const uint8_t*)> request;
        std::function<void(const Frame&, const uint8_t*)> answer;
        std::function<void(unsigned process)> lost;
    };

    // Sends and receives what is there, waiting so long for something to arrive; true if something did.
    bool turn(const Handler& handler, int wait_microseconds);

    // Removes what announces this process.
    void leave();

  private:
    void listen();
    void join();

    const std::string folder_, address_;
    int listener_ = -1;
    int port_ = 0;
    unsigned process_ = 0;
    std::map<unsigned, std::unique_ptr<Connection>> outgoing_;
    std::vector<std::shared_ptr<Connection>> incoming_;
};

}  // namespace card
