// One line of a sandbox's egress log, and its end.
#pragma once

#include <cstdint>
#include <string>

namespace cloister::egressd {

struct Record {
    uint64_t id = 0;  // of this egress
    std::string sandbox;
    int64_t at_ms = 0;
    std::string protocol;  // tcp, udp, dns
    std::string name;      // that it was judged by, or empty
    std::string address;   // empty for look-ups
    uint16_t port = 0;
    std::string verdict;  // allowed, denied, failed
    std::string rule;     // that decided, or why it failed
};

struct RecordEnd {
    uint64_t id = 0;
    std::string sandbox;
    uint64_t sent = 0, received = 0;  // bytes, as the sandbox sees it
    int64_t duration_ms = 0;
    std::string reason;  // closed, cut: …
};

}  // namespace cloister::egressd
