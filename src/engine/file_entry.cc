#include "engine/file_entry.h"

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "wire/file_limits.h"

namespace cloister::engine {
namespace {

constexpr std::array<std::string_view, 6> kTypes = {"file", "directory", "symlink",
                                                    "fifo", "socket",    "device"};
// As the agent writes them: nothing that could break a header.
constexpr std::string_view kEtagCharacters = "0123456789abcdef-";

bool is_type(std::string_view word) {
    return std::ranges::find(kTypes, word) != kTypes.end();
}

Error nonsense() {
    return make_error(ErrorKind::Unavailable, "the sandbox's agent told nonsense about a file");
}

}  // namespace

Result<FileEntry> file_entry_from(const json::value* value) {
    if (value == nullptr || !value->is_object()) return nonsense();
    FieldReader in(value->as_object(), "");
    FileEntry entry;
    entry.path = in.required_string("path", 2 * limits::kPathMax);
    entry.type = in.required_string("type", 16);
    entry.size = static_cast<uint64_t>(in.optional_int("size", 0, INT64_MAX).value_or(0));
    entry.mode = static_cast<uint32_t>(in.optional_int("mode", 0, 07777).value_or(0));
    entry.uid = static_cast<uint32_t>(in.optional_int("uid", 0, UINT32_MAX).value_or(0));
    entry.gid = static_cast<uint32_t>(in.optional_int("gid", 0, UINT32_MAX).value_or(0));
    entry.user = in.required_string("user", 32);
    entry.group = in.required_string("group", 32);
    entry.modified_ms = in.optional_int("modified_ms", 0, INT64_MAX).value_or(0);
    entry.etag = in.required_string("etag", limits::kEtagMax);
    entry.target = in.optional_string("target", 2 * limits::kPathMax);
    entry.target_type = in.optional_string("target_type", 16);
    // Other programs in the sandbox may set what we would refuse.
    constexpr size_t kMetadataMax = 64 * limits::kKiB;
    entry.metadata =
        in.optional_string_map("metadata", kMetadataMax, kMetadataMax).value_or(StringMap{});
    const bool good = in.finish().has_value() && is_type(entry.type) &&
                      is_type(entry.target_type.value_or("file")) &&
                      entry.etag.find_first_not_of(kEtagCharacters) == std::string::npos;
    if (!good) return nonsense();
    return entry;
}

}  // namespace cloister::engine
