// The short answers of the agent protocol as JSON texts.
#pragma once

#include <string>

#include "base/error.h"

namespace cloister::agent {

// {"ok": true} with further fields: `"size":3`.
std::string ok_answer(std::string_view fields = {});
// {"ok": false, "error": {…}}
std::string error_answer(const Error& error);

}  // namespace cloister::agent
