// A RunSpec as the text that its row in the store holds until the run has ended: so that a new
// server can go on with it, or begin it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/run.h"

namespace cloister::engine {

std::string spec_text(const RunSpec& spec);
Result<RunSpec> spec_from(std::string_view text);

}  // namespace cloister::engine
