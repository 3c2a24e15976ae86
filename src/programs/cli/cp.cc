// cloister cp: files and directories between this machine and a sandbox.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/ids.h"
#include "programs/cli/api.h"
#include "programs/cli/archive.h"
#include "programs/cli/command.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/files.h"
#include "programs/cli/remote_path.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"
#include "programs/cli/transfer_bar.h"

namespace cloister::cli {
namespace {

namespace fs = std::filesystem;

struct CopyOptions {
    Place place;
    std::string from, to, user;
    bool durable = false;
    bool as_json = false;
};

std::string text_at(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

uint64_t number_at(const json::object& object, std::string_view name) {
    boost::system::error_code failure;
    const json::value* value = object.if_contains(name);
    if (value == nullptr || !value->is_number()) return 0;
    const auto number = value->to_number<uint64_t>(failure);
    return failure ? 0 : number;
}

class Copy {
  public:
    Copy(Api api, const CopyOptions& options) : api_(std::move(api)), options_(options) {}

    // What was copied where, for `--json`.
    Result<json::object> run() {
        const CopyPlace from = copy_place(options_.from), to = copy_place(options_.to);
        if (from.remote() == to.remote()) {
            return make_error(ErrorKind::InvalidArgument,
                              "one of both must be in a sandbox: SANDBOX:PATH");
        }
        return from.remote() ? down(from, to.path) : up(from.path, to);
    }

  private:
    std::string target(const CopyPlace& place, std::string_view operation) const {
        return files_target(place, operation, options_.user);
    }

    // nullopt if nothing is there.
    Result<std::optional<json::object>> look_at(const CopyPlace& place) const {
        auto entry = api_.get(target(place, "/stat") + "&follow=true");
        if (entry) return std::move(*entry);
        if (entry.error().kind == ErrorKind::NotFound) {
            // The sandbox itself may be what is missing.
            TRY(api_.get("/v1/sandboxes/" + place.sandbox));
            return std::nullopt;
        }
        return std::move(entry).error();
    }

    // --- Into the sandbox ---

    Result<json::object> up(const std::string& from, CopyPlace to) {
        const auto there = TRY(look_at(to));
        if (there && text_at(*there, "type") == "directory" && from != "-") {
            to.path += (to.path.ends_with('/') ? "" : "/") + last_part(fs::absolute(from));
        }
        return is_directory(from) ? directory_up(from, to) : file_up(from, to);
    }

    Result<json::object> file_up(const std::string& from, const CopyPlace& to) {
        FileSource source =
            TRY(from == "-" ? FileSource::standard_input() : FileSource::open(from));
        TransferBar bar(last_part(to.path), source.size());
        std::string target = this->target(to, "") + (options_.durable ? "&durable=true" : "");
        if (const auto mode = source.mode()) target += fmt::format("&mode={:04o}", *mode);
        TRY(api_.upload(target, [&]() -> Result<std::string> {
            std::string piece = TRY(source.next());
            bar.add(piece.size());
            return piece;
        }));
        return json::object{{"from", from}, {"to", options_.to}, {"bytes", bar.done()}};
    }

    Result<json::object> directory_up(const std::string& from, const CopyPlace& to) {
        const auto source = TRY(ArchiveSource::open(from));
        TransferBar bar(last_part(from), std::nullopt);
        const std::string target =
            this->target(to, "/tar") + (options_.durable ? "&durable=true" : "");
        const json::object done = TRY(api_.upload(target, [&]() -> Result<std::string> {
            std::string piece = TRY(source->next());
            bar.add(piece.size());
            return piece;
        }));
        return json::object{{"from", from},
                            {"to", options_.to},
                            {"entries", number_at(done, "entries")},
                            {"bytes", number_at(done, "bytes")}};
    }

    // --- Out of the sandbox ---

    Result<json::object> down(const CopyPlace& from, const std::string& to) {
        const auto there = TRY(look_at(from));
        if (!there) {
            return make_error(ErrorKind::NotFound,
                              fmt::format("there is no {} in the sandbox", from.path));
        }
        const bool directory = text_at(*there, "type") == "directory";
        const uint64_t size = number_at(*there, "size");
        if (to == "-") return to_standard_output(from, directory);
        const std::string place =
            is_directory(to) ? (fs::path(to) / last_part(from.path)).string() : to;
        return directory ? directory_down(from, place) : file_down(from, place, size);
    }

    // Beside its place until it is whole.
    Result<json::object> file_down(const CopyPlace& from, const std::string& to, uint64_t size) {
        const std::string beside = to + ".part-" + new_id();
        const os::Fd file = TRY(create_file(beside));
        TransferBar bar(last_part(to), size);
        auto got = api_.download(target(from, ""), [&](std::string_view bytes) -> Result<void> {
            bar.add(bytes.size());
            return os::write_all(file, bytes);
        });
        if (got && std::rename(beside.c_str(), to.c_str()) != 0)
            got = last_os_failure("writing " + to);
        if (!got) ::unlink(beside.c_str());
        TRY_OK(got);
        return json::object{{"from", options_.from}, {"to", to}, {"bytes", bar.done()}};
    }

    Result<json::object> directory_down(const CopyPlace& from, const std::string& to) {
        ArchiveSink sink = TRY(ArchiveSink::create(to));
        TransferBar bar(last_part(to), std::nullopt);
        TRY_OK(api_.download(target(from, "/tar"), [&](std::string_view bytes) {
            bar.add(bytes.size());
            return sink.take(bytes);
        }));
        TRY_OK(sink.finish());
        return json::object{
            {"from", options_.from}, {"to", to}, {"files", sink.files()}, {"bytes", bar.done()}};
    }

    // A file as it is, a directory as a tar archive.
    Result<json::object> to_standard_output(const CopyPlace& from, bool directory) {
        const os::Fd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
        if (!out.open()) return last_os_failure("writing to standard output");
        uint64_t bytes = 0;
        TRY_OK(api_.download(target(from, directory ? "/tar" : ""),
                             [&](std::string_view piece) -> Result<void> {
                                 bytes += piece.size();
                                 return os::write_all(out, piece);
                             }));
        return json::object{{"from", options_.from}, {"to", "-"}, {"bytes", bytes}};
    }

    const Api api_;
    const CopyOptions& options_;
};

Result<json::object> copy(const CopyOptions& options) {
    const ServiceAddress address = TRY(find_service(options.place));
    return Copy(TRY(Api::create(address)), options).run();
}

}  // namespace

int cp_command(const Words& words) {
    CopyOptions options;
    CLI::App app(
        "Copy files and directories to and from a sandbox: `cloister cp ID:PATH HERE`,\n"
        "`cloister cp HERE ID:PATH`; `-` is standard input or output (of a directory: a tar)",
        "cloister cp");
    add_place_options(app, options.place);
    add_service_options(app, options.place);
    app.add_option("from", options.from, "what to copy")->required();
    app.add_option("to", options.to, "where to; into it, if it is a directory")->required();
    app.add_option("--user", options.user, "root: with the rights of the sandbox's root");
    app.add_flag("--durable", options.durable, "wait until it is on the sandbox's disk");
    app.add_flag("--json", options.as_json, "say as JSON what was copied");
    if (const auto code = parse_words(app, words)) return *code;
    const Result<json::object> done = copy(options);
    if (!done) return say_error(done.error());
    if (options.as_json && options.to != "-") print(json::serialize(*done));
    return 0;
}

}  // namespace cloister::cli
