#include "faults.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "settings.h"

namespace card {

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(20);

const std::map<std::string, ibv_wc_status> kErrors = {
    {"local-length", IBV_WC_LOC_LEN_ERR},       {"local-operation", IBV_WC_LOC_QP_OP_ERR},
    {"local-protection", IBV_WC_LOC_PROT_ERR},  {"remote-request", IBV_WC_REM_INV_REQ_ERR},
    {"remote-access", IBV_WC_REM_ACCESS_ERR},   {"remote-operation", IBV_WC_REM_OP_ERR},
    {"retry-exceeded", IBV_WC_RETRY_EXC_ERR},   {"receiver-not-ready", IBV_WC_RNR_RETRY_EXC_ERR},
};

// What a card or its driver does not do.
const std::set<std::string> kLimits = {"global-header", "one-register", "real-time"};

}  // namespace

Faults::Faults(std::string file, uint64_t seed) : file_(std::move(file)), random_(seed) {
    const char* given = std::getenv("DEEPEP_CARD_FAULTS");
    if (given != nullptr) {
        std::string text = given;
        std::replace(text.begin(), text.end(), ';', '\n');
        read(text);
    }
}

void Faults::refresh(Clock::time_point now) {
    if (now < next_look_) return;
    next_look_ = now + kLookEvery;
    struct stat state{};
    if (stat(file_.c_str(), &state) != 0) return;
    int64_t changed = state.st_mtim.tv_sec * 1'000'000'000ll + state.st_mtim.tv_nsec;
    if (changed == changed_) return;
    changed_ = changed;
    std::ifstream in(file_);
    std::stringstream text;
    text << in.rdbuf();
    max_delay_ = megabytes_ = 0;
    max_hold_ = kUsualHold;
    down_until_.clear();
    rules_.clear();
    limits_.clear();
    read(text.str());
}

void Faults::read(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.find_first_not_of(" \t") == std::string::npos || line[0] == '#') continue;
        if (!read_rule(line)) say("fault \"%s\" is not known; see README.md of the card", line.c_str());
    }
}

bool Faults::read_rule(const std::string& line) {
    std::istringstream words(line);
    std::string verb, word;
    words >> verb;
    if (verb == "rank") {  // the rest is for one rank
        words >> word;
        const char* own = std::getenv("RANK");
        std::string rest;
        std::getline(words, rest);
        return own == nullptr || word != own || read_rule(rest);
    }
    if (verb == "delay") return static_cast<bool>(words >> max_delay_);
    if (verb == "hold") return static_cast<bool>(words >> max_hold_);
    if (verb == "bandwidth") return static_cast<bool>(words >> megabytes_);
    if (kLimits.contains(verb)) {
        limits_.insert(verb);
        return true;
    }
    if (verb == "port") {
        if (!(words >> word) || (word != "up" && word != "down")) return false;
        std::string port;
        words >> port;
        down_until_[port] = word == "up" ? Clock::time_point{} : Clock::time_point::max();
        return true;
    }
    Rule rule{};
    if (!(words >> rule.after)) return false;
    if (verb == "stall" || verb == "port-down") {
        rule.kind = verb == "stall" ? Rule::kStall : Rule::kPortDown;
        if (!(words >> rule.milliseconds)) return false;
        words >> rule.port;
    } else if (verb == "wrong-key" || verb == "refuse") {
        rule.kind = verb == "refuse" ? Rule::kRefuse : Rule::kWrongKey;
    } else if (verb == "fail" && words >> word && kErrors.contains(word)) {
        rule.kind = Rule::kFail;
        rule.status = kErrors.at(word);
    } else {
        return false;
    }
    rules_.push_back(rule);
    return true;
}

Faults::Verdict Faults::next(uint32_t queue, bool has_key) {
    Verdict verdict;
    if (max_delay_ > 0) verdict.wait = std::chrono::microseconds(random(max_delay_ + 1));
    for (size_t i = 0; i < rules_.size();) {
        Rule& rule = rules_[i];
        bool passes = rule.kind == Rule::kRefuse || rule.after-- > 0;
        if (passes || (rule.kind == Rule::kWrongKey && !has_key)) {  // an entry that does nothing has no key
            i++;
            continue;
        }
        say("fault on queue 0x%x", queue);
        if (rule.kind == Rule::kStall) verdict.wait += std::chrono::milliseconds(rule.milliseconds);
        if (rule.kind == Rule::kFail) verdict.status = rule.status;
        if (rule.kind == Rule::kPortDown) {
            down_until_[rule.port] = Clock::now() + std::chrono::milliseconds(rule.milliseconds);
        }
        if (rule.kind == Rule::kWrongKey) verdict.wrong_key = true;
        rules_.erase(rules_.begin() + static_cast<long>(i));
    }
    return verdict;
}

bool Faults::port_up(const std::string& port) const {
    auto now = Clock::now();
    for (const std::string& name : {std::string(), port}) {
        auto found = down_until_.find(name);
        if (found != down_until_.end() && now < found->second) return false;
    }
    return true;
}

bool Faults::refuses() {
    refresh(Clock::now());
    auto refusal = std::find_if(rules_.begin(), rules_.end(), [](Rule& rule) {
        return rule.kind == Rule::kRefuse && rule.after-- == 0;
    });
    if (refusal == rules_.end()) return false;
    rules_.erase(refusal);
    return true;
}

std::chrono::microseconds Faults::duration(uint64_t num_bytes) const {
    return std::chrono::microseconds(megabytes_ == 0 ? 0 : num_bytes / megabytes_);
}

}  // namespace card
