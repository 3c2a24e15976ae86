// The id of a run. One with an idempotency key has an id that follows from it: whoever sends the
// same request (key and code) again finds the run, also when this service was killed in between.
#pragma once

#include <string>
#include <string_view>

namespace cloister::engine {

// A random one if `key` is empty.
std::string run_id_for(std::string_view project, std::string_view sandbox, std::string_view key,
                       std::string_view code);

}  // namespace cloister::engine
