#include "programs/cli/auto_start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/limits.h"
#include "os/launch.h"
#include "programs/cli/api.h"
#include "programs/cli/terminal.h"

extern char** environ;

namespace cloister::cli {
namespace {

constexpr std::string_view kStartService = "/usr/local/lib/cloister/start-service";
// The first start may have to import the base image.
constexpr int64_t kStartMs = 900'000;

bool answers(const ServiceAddress& address) {
    const auto api = Api::create(address);
    return api && api->get("/healthz");
}

std::vector<std::string> start_command(const std::string& data) {
    if (::geteuid() != 0) return {"/usr/bin/sudo", "-n", std::string(kStartService)};
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string idle_seconds = std::to_string(limits::kAutoStartIdleExitMs / 1000);
    return {self, "serve", "--detach", "--quiet", "--idle-exit", idle_seconds, "--data", data};
}

Error cannot_start(std::string_view why) {
    const std::string_view way_out =
        ::geteuid() == 0 ? "the lines above say why"
                         : "start it with `sudo cloister serve --detach`, or allow it "
                           "once with `sudo ./dev setup`";
    return make_error(
        ErrorKind::FailedPrecondition,
        fmt::format("no service answers, and starting one failed ({}): {}", why, way_out));
}

Result<void> start_service(const std::string& data) {
    os::Program program;
    program.argv = start_command(data);
    for (char** variable = environ; *variable != nullptr; ++variable)
        program.environment.emplace_back(*variable);
    auto child = os::Child::launch(program);
    if (!child) return cannot_start(child.error().message);
    const Progress progress("starting the service");  // a thread: only after the fork
    if (!TRY(os::wait_for_end(child->process(), kStartMs))) return cannot_start("it took too long");
    const auto end = child->end();
    if (!end || end->signal != 0 || end->exit_code != 0) {
        return cannot_start(
            fmt::format("{} ended with {}", program.argv.front(), end ? end->exit_code : -1));
    }
    return {};
}

}  // namespace

Result<ServiceAddress> find_or_start_service(const Place& place) {
    auto address = find_service(place);
    if (address && answers(*address)) return address;
    if (!address && address.error().kind != ErrorKind::FailedPrecondition) return address;
    const bool is_elsewhere = !place.url.empty() || !environment("CLOISTER_URL").empty();
    if (is_elsewhere) return address;  // the first request says that nobody answers
    const std::string data = TRY(find_data(place));
    TRY_OK(start_service(data));
    return find_service(place);
}

}  // namespace cloister::cli
