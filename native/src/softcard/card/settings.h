// What the environment says about this process's card; see README.md.
#pragma once

#include <cstdint>
#include <string>

namespace card {

struct Settings {
    std::string folder;   // where the cards of one network find each other
    std::string address;  // IPv4 address that the others reach this process by
    int num_devices = 1;
    int num_ports = 1;  // of each device
    bool ethernet = false;
    uint64_t seed = 1;
    bool relaxed_ordering = true;  // whether writes to memory registered for relaxed ordering do overtake each other
    int retry_milliseconds = 2000;

    static const Settings& get();
};

// Prints one line on standard error, with the process's number.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace card
