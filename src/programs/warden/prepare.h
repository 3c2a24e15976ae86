// `cloister-warden prepare`: makes the pool and fills it. Every step is skipped when it is done
// already, and can be killed at any point: the next call goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace cloister::warden {

struct PrepareOptions {
    std::string data;
    std::vector<std::string> images;  // see jail::name_of_image; a layer stands behind its base
    std::string runtime;              // directory of agent and drivers
    uint64_t pool_bytes = 0;          // 0: chosen by the free space
};

// Tells its steps on standard error, for a person.
Result<void> prepare(const PrepareOptions& options);

}  // namespace cloister::warden
