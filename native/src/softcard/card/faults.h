// What goes wrong, and when: rules of the environment, and of a file that may change while the card runs.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <map>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace card {

using Clock = std::chrono::steady_clock;

class Faults {
  public:
    Faults(std::string file, uint64_t seed);

    // Reads the file again if it has changed.
    void refresh(Clock::time_point now);

    // What happens to the next entry that the card would execute.
    struct Verdict {
        std::chrono::microseconds wait{0};
        ibv_wc_status status = IBV_WC_SUCCESS;  // else the entry fails so
        bool wrong_key = false;
    };
    Verdict next(uint32_t queue, bool has_key);

    // Whether the call that would make the next object fails.
    bool refuses();

    // When so many bytes may follow each other.
    std::chrono::microseconds duration(uint64_t num_bytes) const;

    // How long a write is held back that may be overtaken.
    std::chrono::microseconds hold() { return std::chrono::microseconds(random(max_hold_)); }

    bool port_up(const std::string& port) const;
    bool limited(const std::string& limit) const { return limits_.contains(limit); }
    uint64_t random(uint64_t below) { return below == 0 ? 0 : random_() % below; }

  private:
    struct Rule {
        enum Kind { kStall, kFail, kWrongKey, kPortDown, kRefuse } kind;
        int64_t after;  // entries from now on that come first; objects, for kRefuse
        int milliseconds = 0;
        ibv_wc_status status = IBV_WC_SUCCESS;
        std::string port;  // that goes down; empty: all
    };
    void read(const std::string& text);
    bool read_rule(const std::string& line);

    const std::string file_;
    std::mt19937_64 random_;
    Clock::time_point next_look_{};
    int64_t changed_ = 0;
    static constexpr uint64_t kUsualHold = 300;
    uint64_t max_delay_ = 0, max_hold_ = kUsualHold;  // microseconds
    uint64_t megabytes_ = 0;                          // per second; 0: no limit
    std::map<std::string, Clock::time_point> down_until_;  // by port; that of all is empty
    std::vector<Rule> rules_;
    std::set<std::string> limits_;
};

}  // namespace card
