// Names and values (environments, metadata) as JSON, for agents and for rows.
#pragma once

#include <string>

#include "wire/json.h"

namespace cloister::engine {

json::object map_json(const StringMap& map);
std::string map_text(const StringMap& map);
// Of a row: what is no string is left out.
StringMap map_from(const std::string& text);

}  // namespace cloister::engine
