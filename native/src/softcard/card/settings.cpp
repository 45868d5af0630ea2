#include "settings.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace card {

namespace {

std::string text(const char* name, const std::string& otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr || *value == 0 ? otherwise : value;
}

int number(const char* name, int otherwise, int least, int most) {
    std::string value = text(name, std::to_string(otherwise));
    char* end = nullptr;
    long parsed = std::strtol(value.c_str(), &end, 10);
    if (*end != 0 || parsed < least || parsed > most) {
        say("%s=%s is not a number in [%d, %d]; taking %d", name, value.c_str(), least, most, otherwise);
        return otherwise;
    }
    return static_cast<int>(parsed);
}

}  // namespace

const Settings& Settings::get() {
    // Never destroyed: the card's thread may still run when the process ends.
    static const Settings& settings = *new Settings([] {
        Settings s;
        s.folder = text("DEEPEP_CARD_FOLDER", "/tmp/deepep-card-" + std::to_string(getuid()));
        s.address = text("DEEPEP_CARD_ADDRESS", "127.0.0.1");
        s.num_devices = number("DEEPEP_CARD_DEVICES", 1, 1, 4);
        s.num_ports = number("DEEPEP_CARD_PORTS", 1, 1, 4);
        s.ethernet = text("DEEPEP_CARD_LINK", "infiniband") == "ethernet";
        s.seed = static_cast<uint64_t>(number("DEEPEP_CARD_SEED", 1, 0, 1 << 30));
        s.relaxed_ordering = number("DEEPEP_CARD_RELAXED", 1, 0, 1) != 0;
        s.retry_milliseconds = number("DEEPEP_CARD_RETRY", 2000, 1, 1 << 30);
        return s;
    }());
    return settings;
}

void say(const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "software card [%d]: %s\n", getpid(), line);
}

}  // namespace card
