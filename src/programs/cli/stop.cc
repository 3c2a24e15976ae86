// cloister stop: ends the service of a data directory, the polite way first.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "programs/cli/command.h"
#include "programs/cli/service_files.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"
#include "wire/layout.h"

namespace cloister::cli {
namespace {

constexpr int64_t kGraceMs = 55'000;  // more than the supervisor gives its programs

Result<void> stop(const Place& place) {
    const std::string data = TRY(find_data(place));
    const auto record = read_service_file(data);
    if (!record) {
        say("no service runs on " + data);
        return {};
    }
    if (::geteuid() != 0)
        return make_error(ErrorKind::PermissionDenied,
                          "the service runs as root: `sudo cloister stop`");
    const Progress progress("stopping the service");
    end_processes({record->supervisor}, kGraceMs);
    end_processes(record->children, 0);
    ::unlink(layout::service_file(data).c_str());
    say(fmt::format("the service on {} has stopped", data));
    return {};
}

}  // namespace

int stop_command(const Words& words) {
    Place place;
    CLI::App app("Stops the service; all its sandboxes end", "cloister stop");
    add_place_options(app, place);
    if (const auto code = parse_words(app, words)) return *code;
    const Result<void> stopped = stop(place);
    return stopped ? 0 : say_error(stopped.error());
}

}  // namespace cloister::cli
