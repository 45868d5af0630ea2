#include "wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "settings.h"

namespace card {

namespace {

constexpr uint32_t kMagic = 0x64636a31;
constexpr size_t kReadBytes = 1 << 20;
constexpr unsigned kMaxProcesses = (1u << kProcessBits) - 1;
constexpr int kBufferBytes = 4 << 20;

void prepare(int socket) {
    int yes = 1, size = kBufferBytes;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

sockaddr_in address_of(const std::string& host, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return address;
}

}  // namespace

Connection::~Connection() { close(socket_); }

void Connection::send(const Frame& frame, const void* data) {
    Frame header = frame;
    header.magic = kMagic;
    bool has_data = data != nullptr && frame.num_bytes > 0;
    size_t at = out_.size();
    out_.resize(at + sizeof(header) + (has_data ? frame.num_bytes : 0));
    std::memcpy(&out_[at], &header, sizeof(header));
    if (has_data) std::memcpy(&out_[at + sizeof(header)], data, frame.num_bytes);
}

bool Connection::flush() {
    while (sent_ < out_.size()) {
        ssize_t sent = ::send(socket_, &out_[sent_], out_.size() - sent_, MSG_NOSIGNAL);
        if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        sent_ += static_cast<size_t>(sent);
    }
    out_.clear();
    sent_ = 0;
    return true;
}

bool Connection::read_some() {
    if (taken_ > 0) {
        std::memmove(in_.data(), &in_[taken_], filled_ - taken_);
        filled_ -= taken_;
        taken_ = 0;
    }
    if (in_.size() - filled_ < kReadBytes) in_.resize(filled_ + kReadBytes);
    ssize_t got = recv(socket_, &in_[filled_], in_.size() - filled_, 0);
    if (got > 0) filled_ += static_cast<size_t>(got);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

bool Connection::receive(const std::function<void(const Frame&, const uint8_t*)>& take) {
    if (!read_some()) return false;
    while (filled_ - taken_ >= sizeof(Frame)) {
        Frame frame;
        std::memcpy(&frame, &in_[taken_], sizeof(frame));
        if (frame.magic != kMagic) {
            say("a connection sent 0x%x where a frame should begin; it is closed", frame.magic);
            return false;
        }
        bool read_request = frame.kind == FrameKind::kRequest && frame.operation == Operation::kRead;
        size_t data = read_request ? 0 : frame.num_bytes;
        if (filled_ - taken_ < sizeof(frame) + data) break;
        take(frame, &in_[taken_ + sizeof(frame)]);
        taken_ += sizeof(frame) + data;
    }
    return true;
}

Wire::Wire(const std::string& folder, const std::string& address) : folder_(folder), address_(address) {
    mkdir(folder.c_str(), 0777);
    listen();
    join();
}

void Wire::listen() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = address_of(address_, 0);
    socklen_t length = sizeof(address);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(listener_, 512) != 0) {
        say("cannot listen on %s: %s", address_.c_str(), std::strerror(errno));
    }
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    fcntl(listener_, F_SETFL, fcntl(listener_, F_GETFL) | O_NONBLOCK);
}

// The first number that no other process has taken.
void Wire::join() {
    std::string text = address_ + " " + std::to_string(port_) + "\n";
    std::string ready = folder_ + "/.joining-" + std::to_string(getpid());
    std::ofstream(ready) << text;
    for (process_ = 1; process_ <= kMaxProcesses; process_++) {
        if (link(ready.c_str(), (folder_ + "/" + std::to_string(process_)).c_str()) == 0) break;
    }
    unlink(ready.c_str());
    if (process_ > kMaxProcesses) say("%s has no number left, or cannot be written", folder_.c_str());
}

void Wire::leave() { unlink((folder_ + "/" + std::to_string(process_)).c_str()); }

Connection* Wire::to(unsigned process) {
    auto known = outgoing_.find(process);
    if (known != outgoing_.end()) return known->second.get();
    std::ifstream in(folder_ + "/" + std::to_string(process));
    std::string host;
    int port = 0;
    if (!(in >> host >> port)) return nullptr;
    int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = address_of(host, port);
    if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        close(socket);
        return nullptr;
    }
    prepare(socket);
    return (outgoing_[process] = std::make_unique<Connection>(socket)).get();
}

bool Wire::turn(const Handler& handler, int wait_microseconds) {
    std::vector<pollfd> sockets;
    std::vector<unsigned> processes;
    auto watch = [&](const Connection& connection) {
        short events = static_cast<short>(POLLIN | (connection.unsent() > 0 ? POLLOUT : 0));
        sockets.push_back({connection.socket(), events, 0});
    };
    sockets.push_back({listener_, POLLIN, 0});
    for (auto& [process, connection] : outgoing_) {
        if (!connection->flush()) sockets.push_back({-1, 0, 0});
        else watch(*connection);
        processes.push_back(process);
    }
    size_t num_incoming = incoming_.size();
    for (auto& connection : incoming_) {
        connection->flush();
        watch(*connection);
    }
    timespec wait{0, wait_microseconds * 1000L};
    if (ppoll(sockets.data(), sockets.size(), &wait, nullptr) < 0) return false;
    bool arrived = false;
    for (size_t i = 0; i < processes.size(); i++) {
        pollfd& state = sockets[i + 1];
        Connection& connection = *outgoing_[processes[i]];
        bool alive = state.fd >= 0;
        if (alive && (state.revents & ~POLLOUT) != 0) {
            arrived = true;
            alive = connection.receive(handler.answer);
        }
        if (!alive) {
            outgoing_.erase(processes[i]);
            handler.lost(processes[i]);
        }
    }
    for (size_t i = num_incoming; i-- > 0;) {
        pollfd& state = sockets[processes.size() + 1 + i];
        if ((state.revents & ~POLLOUT) == 0) continue;
        arrived = true;
        std::shared_ptr<Connection> connection = incoming_[i];
        auto take = [&](const Frame& frame, const uint8_t* data) { handler.request(connection, frame, data); };
        if (!connection->receive(take)) incoming_.erase(incoming_.begin() + static_cast<long>(i));
    }
    if (sockets[0].revents != 0) {
        int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket >= 0) {
            prepare(socket);
            incoming_.push_back(std::make_shared<Connection>(socket));
        }
    }
    return arrived;
}

}  // namespace card
