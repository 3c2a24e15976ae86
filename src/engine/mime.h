// The MIME type of a file, guessed from its name.
#pragma once

#include <string_view>

namespace cloister::engine {

// "application/octet-stream" if nothing better is known.
std::string_view mime_of(std::string_view path);

}  // namespace cloister::engine
