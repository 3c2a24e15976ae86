// RunEnd ↔ JSON: the agent's `ended` event in, the fields of an ended run out.
#pragma once

#include <vector>

#include "base/result.h"
#include "wire/json.h"
#include "wire/run_end.h"

namespace cloister::engine {

// Checks and bounds every field; Unavailable if the agent sent nonsense.
Result<RunEnd> decode_run_end(const json::object& event);
// What an event or a record lists as `artifacts`, likewise.
std::vector<Artifact> artifacts_of(const json::object& event);
// Adds end_reason, exit_code, message, state_lost, limits_hit, artifacts and metrics.
void add_run_end(json::object& run, const RunEnd& end);

}  // namespace cloister::engine
