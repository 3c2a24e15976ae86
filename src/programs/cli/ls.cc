// cloister ls: the files of a sandbox.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "programs/cli/api.h"
#include "programs/cli/command.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/remote_path.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"

namespace cloister::cli {
namespace {

struct ListOptions {
    Place place;
    std::string what, user;
    int depth = 1;
    bool with_details = false;
    bool as_json = false;
};

std::string text_at(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

// What is below the directory that was asked for.
std::string shown_name(const json::object& entry, const std::string& top) {
    std::string path = text_at(entry, "path");
    if (path.starts_with(top)) path.erase(0, top.size());
    const std::string type = text_at(entry, "type");
    if (type == "directory") path += "/";
    if (type == "symlink") path += " -> " + text_at(entry, "target");
    return printable(path);
}

void print_entry(const json::object& entry, const std::string& top, bool with_details) {
    const std::string name = shown_name(entry, top);
    if (!with_details) return print(name);
    const json::value* size = entry.if_contains("size");
    const uint64_t bytes =
        size != nullptr && size->is_int64() ? static_cast<uint64_t>(size->as_int64()) : 0;
    print(fmt::format("{} {:>5} {:>8}  {}  {}", printable(text_at(entry, "mode")),
                      printable(text_at(entry, "user")), size_text(bytes),
                      printable(text_at(entry, "modified_at").substr(0, 19)), name));
}

// A file is its own list.
Result<json::array> entries_of(const Api& api, const ListOptions& options, const CopyPlace& place,
                               std::string& top) {
    const json::object about =
        TRY(api.get(files_target(place, "/stat", options.user) + "&follow=true"));
    if (text_at(about, "type") != "directory") return json::array{about};
    top = place.path.starts_with('/') ? place.path : "/home/user/" + place.path;
    if (!top.ends_with('/')) top += '/';
    json::array all;
    std::string after;
    do {
        std::string target =
            files_target(place, "/list", options.user) + fmt::format("&depth={}", options.depth);
        if (!after.empty()) target += "&after=" + percent_encode(after);
        const json::object page = TRY(api.get(target));
        const json::value* entries = page.if_contains("entries");
        if (entries == nullptr || !entries->is_array()) break;
        for (const json::value& entry : entries->as_array()) all.push_back(entry);
        after = text_at(page, "next");
    } while (!after.empty());
    return all;
}

Result<void> list(const ListOptions& options) {
    const ServiceAddress address = TRY(find_service(options.place));
    const Api api = TRY(Api::create(address));
    const CopyPlace place = copy_place(options.what);
    if (!place.remote()) {
        return make_error(ErrorKind::InvalidArgument, "name a sandbox: SANDBOX or SANDBOX:PATH");
    }
    std::string top;
    const json::array entries = TRY(entries_of(api, options, place, top));
    if (options.as_json) {
        print(json::serialize(json::object{{"entries", entries}}));
        return {};
    }
    for (const json::value& entry : entries) {
        if (entry.is_object()) print_entry(entry.as_object(), top, options.with_details);
    }
    return {};
}

}  // namespace

int ls_command(const Words& words) {
    ListOptions options;
    CLI::App app("List the files of a sandbox: `cloister ls ID`, `cloister ls ID:PATH`",
                 "cloister ls");
    add_place_options(app, options.place);
    add_service_options(app, options.place);
    app.add_option("what", options.what, "SANDBOX or SANDBOX:PATH")->required();
    app.add_option("--depth", options.depth, "how deep to look")->check(CLI::Range(1, 128));
    app.add_option("--user", options.user, "root: with the rights of the sandbox's root");
    app.add_flag("-l,--long", options.with_details, "mode, owner, size and time as well");
    app.add_flag("--json", options.as_json, "as JSON");
    if (const auto code = parse_words(app, words)) return *code;
    const Result<void> done = list(options);
    return done ? 0 : say_error(done.error());
}

}  // namespace cloister::cli
