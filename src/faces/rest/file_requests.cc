#include "faces/rest/file_requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/number.h"
#include "base/time.h"
#include "faces/rest/conditions.h"
#include "wire/file_limits.h"

namespace cloister::rest {
namespace {

constexpr std::string_view kMetadataPrefix = "x-metadata-";

// "0644" or "644"; nullopt if it is no mode.
std::optional<uint32_t> mode_from(std::string_view text) {
    uint32_t mode = 0;
    if (text.empty() || text.size() > 4) return std::nullopt;
    for (const char c : text) {
        if (c < '0' || c > '7') return std::nullopt;
        mode = mode * 8 + static_cast<uint32_t>(c - '0');
    }
    return mode <= 0777 ? std::optional(mode) : std::nullopt;
}

Error no_mode() {
    return invalid_field("mode", "`mode` must be octal digits such as 0644, at most 0777");
}

Result<int64_t> query_number(const Call& call, std::string_view name, int64_t low, int64_t high,
                             int64_t otherwise) {
    const auto text = http::query_value(call.request.query(), name);
    if (!text) return otherwise;
    const auto number = whole_number<int64_t>(*text);
    if (number && *number >= low && *number <= high) return *number;
    return invalid_field(std::string(name),
                         fmt::format("`{}` must be a whole number from {} to {}", name, low, high));
}

Result<std::string> query_text(const Call& call, std::string_view name, size_t max_bytes) {
    const auto text = http::query_value(call.request.query(), name);
    if (!text || text->size() <= max_bytes) return text.value_or("");
    return invalid_field(std::string(name),
                         fmt::format("`{}` has at most {} bytes", name, max_bytes));
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Headers `X-Metadata-KEY: VALUE`; nullopt if there is none.
Result<std::optional<StringMap>> metadata_in(const http::Headers& headers) {
    std::optional<StringMap> metadata;
    size_t bytes = 0;
    for (const auto& [name, value] : headers) {
        std::string key(name);
        std::ranges::transform(key, key.begin(), lower);
        if (!key.starts_with(kMetadataPrefix)) continue;
        key.erase(0, kMetadataPrefix.size());
        bytes += key.size() + value.size();
        if (!metadata) metadata.emplace();
        (*metadata)[key] = value;
        if (key.empty() || key.size() > limits::kFileMetadataKeyMax ||
            bytes > limits::kFileMetadataBytesMax ||
            metadata->size() > limits::kFileMetadataEntriesMax) {
            return invalid_field(
                "metadata",
                fmt::format("metadata: keys of 1 to {} bytes, {} of them, {} bytes in all",
                            limits::kFileMetadataKeyMax, limits::kFileMetadataEntriesMax,
                            limits::kFileMetadataBytesMax));
        }
    }
    return metadata;
}

ops::FileInput input_field(FieldReader& in, const std::string& sandbox) {
    return {.sandbox_id = sandbox,
            .path = in.required_string("path", limits::kPathMax),
            .user = in.optional_string("user", 32).value_or("user")};
}

std::optional<uint32_t> mode_field(FieldReader& in) {
    const auto text = in.optional_string("mode", 8);
    if (!text) return std::nullopt;
    const auto mode = mode_from(*text);
    if (!mode) in.fail("mode", no_mode().message);
    return mode;
}

bool flag(FieldReader& in, std::string_view name) {
    return in.optional_bool(name).value_or(false);
}

}  // namespace

Result<ops::FileInput> file_input(const Call& call, std::string_view otherwise) {
    auto path = http::query_value(call.request.query(), "path");
    if (!path && !otherwise.empty()) path = std::string(otherwise);
    if (!path) {
        return invalid_field("path",
                             "`path` is required in the query, percent-encoded and without NUL");
    }
    const std::string user = call.grant
                                 ? call.grant->user
                                 : http::query_value(call.request.query(), "user").value_or("user");
    return ops::FileInput{.sandbox_id = call.parameters[0], .path = *path, .user = user};
}

Result<bool> query_flag(const Call& call, std::string_view name) {
    const std::string word = http::query_value(call.request.query(), name).value_or("false");
    if (word == "true") return true;
    if (word == "false") return false;
    return invalid_field(std::string(name), fmt::format("`{}` must be true or false", name));
}

Result<engine::WriteSettings> write_settings(const Call& call) {
    engine::WriteSettings settings;
    if (const auto text = http::query_value(call.request.query(), "mode")) {
        settings.mode = mode_from(*text);
        if (!settings.mode) return no_mode();
    }
    settings.append = TRY(query_flag(call, "append"));
    settings.durable = TRY(query_flag(call, "durable"));
    settings.metadata = TRY(metadata_in(call.request.headers()));
    settings.if_match = first_etag(call.request.header("If-Match"));
    if (settings.if_match.size() > limits::kEtagMax) {
        return invalid_field("If-Match", "`If-Match` is an etag of this service");
    }
    const std::string none = first_etag(call.request.header("If-None-Match"));
    if (!none.empty() && none != "*") {
        return invalid_field("If-None-Match", "`If-None-Match` of an upload can only be `*`");
    }
    settings.if_absent = none == "*";
    return settings;
}

Result<ops::ListSettings> list_settings(const Call& call) {
    ops::ListSettings settings;
    settings.depth = TRY(query_number(call, "depth", 1, limits::kFileDepthMax, 1));
    settings.limit =
        TRY(query_number(call, "limit", 1, limits::kFilePageMax, limits::kFilePageMax));
    settings.after = TRY(query_text(call, "after", limits::kPathMax));
    return settings;
}

Result<ops::SearchSettings> search_settings(const Call& call) {
    ops::SearchSettings settings;
    settings.glob = TRY(query_text(call, "glob", limits::kGlobMax));
    settings.text = TRY(query_text(call, "text", limits::kSearchTextMax));
    settings.ignore_case = TRY(query_flag(call, "ignore_case"));
    settings.depth =
        TRY(query_number(call, "depth", 1, limits::kFileDepthMax, limits::kFileDepthMax));
    settings.limit =
        TRY(query_number(call, "limit", 1, limits::kFilePageMax, limits::kFilePageMax));
    if (settings.glob.empty() && settings.text.empty()) {
        return invalid_field("glob", "a search needs `glob`, `text` or both");
    }
    if (settings.text.find('\n') != std::string::npos) {
        return invalid_field("text", "`text` is part of one line");
    }
    return settings;
}

Result<MakeDirectoryBody> decode_make_directory(std::string_view body, const std::string& sandbox) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    MakeDirectoryBody out{.input = input_field(in, sandbox), .settings = {}};
    out.settings.mode = mode_field(in);
    out.settings.exclusive = flag(in, "exclusive");
    out.settings.durable = flag(in, "durable");
    TRY_OK(in.finish());
    return out;
}

Result<MoveBody> decode_move(std::string_view body, const std::string& sandbox) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    MoveBody out{.input = input_field(in, sandbox), .settings = {}};
    out.settings.to = in.required_string("to", limits::kPathMax);
    out.settings.overwrite = flag(in, "overwrite");
    out.settings.durable = flag(in, "durable");
    TRY_OK(in.finish());
    return out;
}

Result<CopyBody> decode_copy(std::string_view body, const std::string& sandbox) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    CopyBody out{.input = input_field(in, sandbox), .settings = {}};
    out.settings.to = in.required_string("to", limits::kPathMax);
    out.settings.overwrite = flag(in, "overwrite");
    out.settings.recursive = flag(in, "recursive");
    out.settings.durable = flag(in, "durable");
    TRY_OK(in.finish());
    return out;
}

Result<ops::FileChange> decode_change(std::string_view body) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    ops::FileChange change;
    change.mode = mode_field(in);
    change.metadata = in.optional_string_map("metadata", limits::kFileMetadataEntriesMax,
                                             limits::kFileMetadataBytesMax);
    if (!change.mode && !change.metadata) {
        in.fail("mode", "nothing to change: give `mode`, `metadata` or both");
    }
    TRY_OK(in.finish());
    return change;
}

Result<SignBody> decode_sign(std::string_view body, const std::string& sandbox) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    SignBody out{.input = input_field(in, sandbox)};
    const std::string access = in.optional_string("access", 16).value_or("read");
    if (access != "read" && access != "write") {
        in.fail("access", "`access` must be `read` or `write`");
    }
    if (access == "write") out.access = engine::FileAccess::Write;
    out.lifetime_ms = 1000 * in.optional_int("expires_seconds", 1, limits::kSignedUrlMaxMs / 1000)
                                 .value_or(limits::kSignedUrlDefaultMs / 1000);
    TRY_OK(in.finish());
    return out;
}

std::string mode_text(uint32_t mode) {
    return fmt::format("{:04o}", mode);
}

json::object entry_json(const engine::FileEntry& entry) {
    json::object out{{"path", entry.path},
                     {"type", entry.type},
                     {"size", entry.size},
                     {"mode", mode_text(entry.mode)},
                     {"uid", entry.uid},
                     {"gid", entry.gid},
                     {"user", entry.user},
                     {"group", entry.group},
                     {"modified_at", rfc3339(entry.modified_ms)},
                     {"etag", entry.etag}};
    if (entry.target) out["target"] = *entry.target;
    if (entry.target_type) out["target_type"] = *entry.target_type;
    if (!entry.metadata.empty()) {
        json::object metadata;
        for (const auto& [key, value] : entry.metadata) metadata[key] = value;
        out["metadata"] = std::move(metadata);
    }
    return out;
}

}  // namespace cloister::rest
