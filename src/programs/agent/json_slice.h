// JSON passed on without being decoded: checks a text strictly and tells where the members of its
// outermost object stand.
//
//     for (const JsonMember& member : TRY(split_object(body)))
//         if (member.key == "data") forward(member.value);   // a slice of body, valid JSON by
//         itself
//
// The agent's memory is small and a display may be megabytes: a decoded copy of it would not fit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cloister::agent {

struct JsonMember {
    std::string_view key;    // as it stands between its quotes
    std::string_view value;  // the text of its value, without surrounding blanks
};

inline constexpr size_t kJsonMembersMax = 256;  // of one object that is split
// One less than the limit of those who decode it: an event is one level around the slice.
inline constexpr int kSliceDepthMax = 28;

// The members of an object. InvalidArgument if `text` is not exactly one JSON object in UTF-8.
Result<std::vector<JsonMember>> split_object(std::string_view text);

// The value of `key`; empty if there is none.
std::string_view find_member(const std::vector<JsonMember>& members, std::string_view key);

// The text of a JSON string without escapes ("display_data"); empty for everything else.
std::string_view plain_string(std::string_view value);

}  // namespace cloister::agent
