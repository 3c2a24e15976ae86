// Ids: 20 characters `[a-z][a-z0-9]{19}` (about 103 random bits), and API keys `e2b_` + 40 hex
// digits.
//
// An id is safe in file names, cgroup names, host names and URLs; names of host objects derive from
// it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace cloister {

inline constexpr size_t kIdLength = 20;

// A new random id. Reads the kernel's random source; aborts if there is none.
std::string new_id();
// Whether `text` has the form of an id. Check before a client's id reaches anything else.
bool is_id(std::string_view text);

// A new API key, "e2b_" + 40 hex digits (160 random bits).
std::string new_api_key();
bool is_api_key(std::string_view text);

// Fills `out` from the kernel's random source.
void random_bytes(std::span<unsigned char> out);

}  // namespace cloister
