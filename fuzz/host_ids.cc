// /etc/subuid and /etc/subgid: what they say of our range of ids is what a plain reading of them
// says.
#include <charconv>
#include <optional>

#include "base/limits.h"
#include "fuzz.h"
#include "jail/id_range.h"

using namespace cloister;

namespace {

// A number of up to 20 digits without overflow, or nothing.
using Wide = unsigned __int128;

std::optional<Wide> number(std::string_view text) {
    uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

bool reaches_us(std::string_view line) {
    const size_t one = line.find(':');
    if (one == std::string_view::npos) return false;
    const size_t two = line.find(':', one + 1);
    if (two == std::string_view::npos) return false;
    const auto first = number(line.substr(one + 1, two - one - 1));
    const auto count = number(line.substr(two + 1));
    return first && count && *count > 0 && *first <= limits::kHostIdLast &&
           *first + *count > limits::kHostIdFirst;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text = fuzz::text_of(data, size);
    bool reached = false;
    for (size_t at = 0; at < text.size();) {
        const std::string_view line = text.substr(at, text.find('\n', at) - at);
        reached = reached || reaches_us(line);
        at += line.size() + 1;
    }
    EXPECT(reached == !jail::check_subordinate_ids(text, "/etc/subuid"));
    return 0;
}
