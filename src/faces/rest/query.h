// Parameters of the query that several operations have.
#pragma once

#include <cstdint>

#include "engine/run_stdin.h"
#include "faces/rest/call.h"

namespace cloister::rest {

// `after` of the query, or the header that a browser sends when it connects again.
Result<uint64_t> after_of(const Call& call);
// `eof`: whether a call that writes to a stdin ends it.
Result<engine::StdinEnd> stdin_end_of(const Call& call);

}  // namespace cloister::rest
