// How strongly the sandboxes of this build are isolated. Other tiers are refused by name: nobody
// gets a weaker one than was asked for.
#pragma once

#include <string_view>

namespace cloister::engine {

inline constexpr std::string_view kTier = "namespace";

}  // namespace cloister::engine
