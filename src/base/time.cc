#include "base/time.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

namespace cloister {

int64_t unix_ms() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

int64_t steady_ms() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

std::string rfc3339(int64_t at_unix_ms) {
    const std::time_t seconds = at_unix_ms / 1000;
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), at_unix_ms % 1000);
}

}  // namespace cloister
