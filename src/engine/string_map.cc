#include "engine/string_map.h"

namespace cloister::engine {

json::object map_json(const StringMap& map) {
    json::object out;
    for (const auto& [name, value] : map) out[name] = value;
    return out;
}

std::string map_text(const StringMap& map) {
    return json::serialize(map_json(map));
}

StringMap map_from(const std::string& text) {
    StringMap out;
    const Result<json::object> object = parse_object(text);
    if (!object) return out;
    for (const auto& [name, value] : *object) {
        if (value.is_string()) out.emplace(name, value.as_string());
    }
    return out;
}

}  // namespace cloister::engine
