// CHECK: a broken invariant of ours ends the program with the place and the reason. Operating
// errors (files, sockets, input) are Results, never CHECKs.
#pragma once

namespace cloister {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace cloister

#define CLOISTER_CHECK(condition) \
    ((condition) ? void(0) : ::cloister::check_failed(#condition, __FILE__, __LINE__))
