// JSON from outside, read with bounds and with errors that name the field.
//
//     json::object body = TRY(parse_object(text));
//     FieldReader in(body, "");
//     auto code = in.required_string("code", limits::kCodeMax);
//     auto timeout = in.optional_int("timeout_ms", 1, limits::kRunTimeoutMaxMs);
//     TRY_OK(in.finish());            // the first error, or an unknown field
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cloister {

namespace json = boost::json;

using StringMap = std::map<std::string, std::string>;

// Parses one JSON value: UTF-8, nested at most limits::kJsonDepthMax deep, nothing behind it.
Result<json::value> parse_json(std::string_view text);
// The same for text that must be an object.
Result<json::object> parse_object(std::string_view text);

// Reads the fields of an object one by one. The first error is kept and every later read answers a
// default, so that a decoder reads straight down and asks once, in finish().
class FieldReader {
  public:
    // `prefix` is put before field names in errors: "files[2]." for a nested object.
    FieldReader(const json::object& object, std::string prefix);

    std::string required_string(std::string_view name, size_t max_bytes);
    std::optional<std::string> optional_string(std::string_view name, size_t max_bytes);
    std::optional<int64_t> optional_int(std::string_view name, int64_t low, int64_t high);
    std::optional<bool> optional_bool(std::string_view name);
    // Lists of strings, and maps of strings; nullopt if absent. Bounds: entries, and bytes of all
    // together.
    std::optional<std::vector<std::string>> optional_strings(std::string_view name, size_t entries,
                                                             size_t max_bytes);
    std::optional<StringMap> optional_string_map(std::string_view name, size_t entries,
                                                 size_t max_bytes);
    // The raw value, marked as known; nullptr if absent or null.
    const json::value* optional_value(std::string_view name);
    const json::object* optional_object(std::string_view name);
    const json::array* optional_array(std::string_view name, size_t entries);

    void fail(std::string_view name, std::string message);  // keeps the first
    bool ok() const { return !error_; }
    // The first error; else an error for the first field that nobody has read; else success.
    Result<void> finish();

  private:
    const json::value* find(std::string_view name);

    const json::object& object_;
    std::string prefix_;
    std::vector<std::string_view> known_;
    std::optional<Error> error_;
};

}  // namespace cloister
