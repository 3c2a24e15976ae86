#include "os/cgroup_stats.h"

#include <charconv>

namespace cloister::os {
namespace {

uint64_t number_at_start(std::string_view text) {
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

}  // namespace

uint64_t parse_key(std::string_view text, std::string_view key) {
    while (!text.empty()) {
        const size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        if (line.starts_with(key) && line.substr(key.size()).starts_with(' ')) {
            return number_at_start(line.substr(key.size() + 1));
        }
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return 0;
}

uint64_t parse_cpu_usec(std::string_view text, CgroupFormat format) {
    if (format == CgroupFormat::V2) return parse_key(text, "usage_usec");
    return number_at_start(text) / 1000;
}

uint64_t parse_oom_kills(std::string_view text) {
    return parse_key(text, "oom_kill");
}

uint64_t parse_pids_max_hits(std::string_view text) {
    return parse_key(text, "max");
}

uint64_t parse_reclaimable(std::string_view text) {
    return parse_key(text, "active_file") + parse_key(text, "inactive_file");
}

uint64_t parse_bytes(std::string_view text) {
    if (text.starts_with("max")) return kUnlimited;
    return number_at_start(text);
}

}  // namespace cloister::os
