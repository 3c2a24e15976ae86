// Errors over REST: the HTTP column of contract/errors.md (a test compares them), and the JSON
// body.
#pragma once

#include <string>

#include "base/error.h"

namespace cloister::rest {

// An invalid_argument that names a field is 422.
int status_of(const Error& error);
std::string error_body(const Error& error, const std::string& request_id);

}  // namespace cloister::rest
