#include "programs/agent/file_request.h"

#include <fmt/format.h>

#include <array>

#include "base/limits.h"
#include "wire/file_limits.h"

namespace cloister::agent {
namespace {

struct VerbName {
    std::string_view op;
    FileVerb verb;
};
constexpr std::array kVerbs = std::to_array<VerbName>({
    {"file.read", FileVerb::Read},
    {"file.write", FileVerb::Write},
    {"file.stat", FileVerb::Stat},
    {"file.list", FileVerb::List},
    {"file.mkdir", FileVerb::MakeDirectory},
    {"file.move", FileVerb::Move},
    {"file.copy", FileVerb::Copy},
    {"file.remove", FileVerb::Remove},
    {"file.change", FileVerb::Change},
    {"file.search", FileVerb::Search},
    {"file.watch", FileVerb::Watch},
    {"file.pack", FileVerb::Pack},
    {"file.unpack", FileVerb::Unpack},
});

std::string path_field(FieldReader& in, std::string_view name, const std::string& home) {
    const std::string path = in.required_string(name, limits::kPathMax);
    if (path.empty() || path.find('\0') != std::string::npos) {
        in.fail(name, fmt::format("`{}` must be a path without a zero byte", name));
    }
    return path.starts_with('/') ? path : home + "/" + path;
}

bool flag(FieldReader& in, std::string_view name) {
    return in.optional_bool(name).value_or(false);
}

void mode_field(FieldReader& in, FileRequest& op) {
    if (const auto mode = in.optional_int("mode", 0, 0777)) op.mode = static_cast<mode_t>(*mode);
}

void metadata_field(FieldReader& in, FileRequest& op) {
    op.metadata = in.optional_string_map("metadata", limits::kFileMetadataEntriesMax,
                                         limits::kFileMetadataBytesMax);
    for (const auto& [key, value] : op.metadata.value_or(StringMap{})) {
        const std::string all = key + value;
        const bool good = !key.empty() && key.size() <= limits::kFileMetadataKeyMax &&
                          all.find('\0') == std::string::npos;
        if (!good) in.fail("metadata", "a key of `metadata` has 1 to 240 bytes, without NUL");
    }
}

void read_fields(FieldReader& in, FileRequest& op) {
    op.offset = static_cast<uint64_t>(in.optional_int("offset", 0, INT64_MAX).value_or(0));
    if (const auto length = in.optional_int("length", 0, INT64_MAX)) {
        op.length = static_cast<uint64_t>(*length);
    }
    if (flag(in, "descriptor")) op.hand = FileRequest::Hand::Descriptor;
}

void write_fields(FieldReader& in, FileRequest& op) {
    mode_field(in, op);
    metadata_field(in, op);
    op.if_match = in.optional_string("if_match", limits::kEtagMax).value_or("");
    op.if_absent = flag(in, "if_absent");
    op.append = flag(in, "append");
    op.durable = flag(in, "durable");
}

void list_fields(FieldReader& in, FileRequest& op) {
    op.depth = static_cast<int>(in.optional_int("depth", 1, limits::kFileDepthMax).value_or(1));
    op.limit = static_cast<size_t>(
        in.optional_int("limit", 1, limits::kFilePageMax).value_or(limits::kFilePageMax));
    op.after = in.optional_string("after", limits::kPathMax).value_or("");
}

void search_fields(FieldReader& in, FileRequest& op) {
    op.glob = in.optional_string("glob", limits::kGlobMax).value_or("");
    op.text = in.optional_string("text", limits::kSearchTextMax).value_or("");
    op.ignore_case = flag(in, "ignore_case");
    op.limit = static_cast<size_t>(
        in.optional_int("limit", 1, limits::kFilePageMax).value_or(limits::kFilePageMax));
    op.depth = static_cast<int>(
        in.optional_int("depth", 1, limits::kFileDepthMax).value_or(limits::kFileDepthMax));
    if (op.text.find('\n') != std::string::npos) in.fail("text", "`text` is part of one line");
}

void transfer_fields(FieldReader& in, FileRequest& op, const std::string& home) {
    op.to = path_field(in, "to", home);
    op.overwrite = flag(in, "overwrite");
    op.durable = flag(in, "durable");
    if (op.verb == FileVerb::Copy) op.recursive = flag(in, "recursive");
}

void other_fields(FieldReader& in, FileRequest& op, const std::string& home) {
    switch (op.verb) {
        case FileVerb::Read:
            return read_fields(in, op);
        case FileVerb::Write:
            return write_fields(in, op);
        case FileVerb::List:
            return list_fields(in, op);
        case FileVerb::Search:
            return search_fields(in, op);
        case FileVerb::Move:
        case FileVerb::Copy:
            return transfer_fields(in, op, home);
        case FileVerb::MakeDirectory:
            mode_field(in, op);
            op.exclusive = flag(in, "exclusive");
            op.durable = flag(in, "durable");
            return;
        case FileVerb::Remove:
        case FileVerb::Watch:
            op.recursive = flag(in, "recursive");
            return;
        case FileVerb::Change:
            mode_field(in, op);
            metadata_field(in, op);
            return;
        case FileVerb::Unpack:
            op.durable = flag(in, "durable");
            return;
        case FileVerb::Stat:
            op.follow = flag(in, "follow");
            return;
        case FileVerb::Pack:
            return;
    }
}

}  // namespace

FileRequest file_request(FieldReader& in, std::string_view op, const std::string& home) {
    FileRequest request;
    const auto* found =
        std::ranges::find_if(kVerbs, [op](const VerbName& name) { return name.op == op; });
    if (found == kVerbs.end()) {
        in.fail("op", fmt::format("there is no operation `{}`", op));
        return request;
    }
    request.verb = found->verb;
    request.path = path_field(in, "path", home);
    const std::string user = in.optional_string("user", 32).value_or("user");
    if (user != "user" && user != "root") in.fail("user", "`user` must be `user` or `root`");
    request.identity = user == "root" ? Identity::Root : Identity::User;
    other_fields(in, request, home);
    return request;
}

Result<FileRequest> decode_file_request(std::string_view text, const std::string& home) {
    const json::object object = TRY(parse_object(text));
    FieldReader in(object, "");
    const std::string op = in.required_string("op", 32);
    FileRequest request = file_request(in, op, home);
    TRY_OK(in.finish());
    return request;
}

}  // namespace cloister::agent
