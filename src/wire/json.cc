#include "wire/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/src.hpp>

#include "base/limits.h"
#include "base/utf8.h"

namespace cloister {

Result<json::value> parse_json(std::string_view text) {
    if (!is_utf8(text)) {
        return make_error(
            ErrorKind::InvalidArgument,
            "the body is not UTF-8: send JSON in UTF-8 and encode binary data as base64");
    }
    json::parse_options options;
    options.max_depth = limits::kJsonDepthMax;
    boost::system::error_code failure;
    json::stream_parser parser({}, options);
    const size_t used = parser.write_some(text.data(), text.size(), failure);
    if (!failure) parser.finish(failure);
    if (!failure && text.substr(used).find_first_not_of(" \t\r\n") != std::string_view::npos) {
        failure = json::make_error_code(json::error::extra_data);
    }
    if (failure) {
        return make_error(
            ErrorKind::InvalidArgument,
            fmt::format("the body is not valid JSON (near byte {}): {}", used, failure.message()));
    }
    return parser.release();
}

Result<json::object> parse_object(std::string_view text) {
    json::value value = TRY(parse_json(text));
    if (!value.is_object()) {
        return make_error(ErrorKind::InvalidArgument, "the body must be a JSON object: {…}");
    }
    return std::move(value.as_object());
}

FieldReader::FieldReader(const json::object& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {}

const json::value* FieldReader::find(std::string_view name) {
    known_.push_back(name);
    const json::value* value = object_.if_contains(name);
    return value == nullptr || value->is_null() ? nullptr : value;
}

void FieldReader::fail(std::string_view name, std::string message) {
    if (!error_) error_ = invalid_field(prefix_ + std::string(name), std::move(message));
}

std::string FieldReader::required_string(std::string_view name, size_t max_bytes) {
    std::optional<std::string> value = optional_string(name, max_bytes);
    if (!value) fail(name, fmt::format("`{}{}` is required: give a string", prefix_, name));
    return std::move(value).value_or("");
}

std::optional<std::string> FieldReader::optional_string(std::string_view name, size_t max_bytes) {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) {
        fail(name, fmt::format("`{}{}` must be a string", prefix_, name));
        return std::nullopt;
    }
    const json::string& text = value->as_string();
    if (text.size() > max_bytes) {
        fail(name, fmt::format("`{}{}` has {} bytes; at most {} are allowed", prefix_, name,
                               text.size(), max_bytes));
        return std::nullopt;
    }
    return std::string(text);
}

std::optional<int64_t> FieldReader::optional_int(std::string_view name, int64_t low, int64_t high) {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    boost::system::error_code failure;
    const int64_t number = value->is_number() ? value->to_number<int64_t>(failure) : 0;
    if (!value->is_number() || failure || number < low || number > high) {
        fail(name,
             fmt::format("`{}{}` must be a whole number from {} to {}", prefix_, name, low, high));
        return std::nullopt;
    }
    return number;
}

std::optional<bool> FieldReader::optional_bool(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_bool()) {
        fail(name, fmt::format("`{}{}` must be true or false", prefix_, name));
        return std::nullopt;
    }
    return value->as_bool();
}

std::optional<std::vector<std::string>> FieldReader::optional_strings(std::string_view name,
                                                                      size_t entries,
                                                                      size_t max_bytes) {
    const json::array* array = optional_array(name, entries);
    if (array == nullptr) return std::nullopt;
    std::vector<std::string> out;
    size_t bytes = 0;
    for (const json::value& entry : *array) {
        if (!entry.is_string()) {
            fail(name, fmt::format("`{}{}` must hold strings only", prefix_, name));
            return std::nullopt;
        }
        bytes += entry.as_string().size();
        out.emplace_back(entry.as_string());
    }
    if (bytes > max_bytes) {
        fail(name, fmt::format("`{}{}` has {} bytes; at most {} are allowed", prefix_, name, bytes,
                               max_bytes));
        return std::nullopt;
    }
    return out;
}

std::optional<StringMap> FieldReader::optional_string_map(std::string_view name, size_t entries,
                                                          size_t max_bytes) {
    const json::object* object = optional_object(name);
    if (object == nullptr) return std::nullopt;
    StringMap out;
    size_t bytes = 0;
    for (const auto& [key, value] : *object) {
        if (!value.is_string()) {
            fail(name, fmt::format("`{}{}.{}` must be a string", prefix_, name, std::string(key)));
            return std::nullopt;
        }
        bytes += key.size() + value.as_string().size();
        out.emplace(key, value.as_string());
    }
    if (out.size() > entries || bytes > max_bytes) {
        fail(name, fmt::format("`{}{}` may hold at most {} entries and {} bytes", prefix_, name,
                               entries, max_bytes));
        return std::nullopt;
    }
    return out;
}

const json::value* FieldReader::optional_value(std::string_view name) {
    return find(name);
}

const json::object* FieldReader::optional_object(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return nullptr;
    if (!value->is_object()) {
        fail(name, fmt::format("`{}{}` must be an object", prefix_, name));
        return nullptr;
    }
    return &value->as_object();
}

const json::array* FieldReader::optional_array(std::string_view name, size_t entries) {
    const json::value* value = find(name);
    if (value == nullptr) return nullptr;
    if (!value->is_array() || value->as_array().size() > entries) {
        fail(name,
             fmt::format("`{}{}` must be a list of at most {} entries", prefix_, name, entries));
        return nullptr;
    }
    return &value->as_array();
}

Result<void> FieldReader::finish() {
    if (error_) return *error_;
    for (const auto& [key, value] : object_) {
        const std::string_view name = key;
        if (std::ranges::find(known_, name) == known_.end()) {
            return invalid_field(
                prefix_ + std::string(name),
                fmt::format("unknown field `{}{}`: remove it, or check its spelling", prefix_,
                            name));
        }
    }
    return {};
}

}  // namespace cloister
