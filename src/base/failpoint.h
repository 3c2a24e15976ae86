// Failpoints: named places where a program dies as if by kill -9, on demand of a test, which then
// looks at what its successor makes of the rest.
//
//     CLOISTER_FAILPOINT=warden:after_journal cloister serve …
//
// Each name is "PROGRAM:PLACE" and stands in the code once. `cloister serve` passes the variable to
// the first start of its programs only, so that the one that died comes back whole.
#pragma once

#include <string_view>

namespace cloister {

// Kills this process and the helpers that it forked (its whole process group) if the variable names
// this place; else does nothing, in nanoseconds.
void failpoint(std::string_view name);

}  // namespace cloister
