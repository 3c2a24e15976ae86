// cloister-warden: the one program with privilege. It makes sandboxes, kills them, and parses no
// client text.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <string>

#include "base/log.h"
#include "os/short_turns.h"
#include "programs/warden/prepare.h"
#include "programs/warden/serve.h"

namespace cloister::warden {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct Options {
    PrepareOptions prepare;
    HostOptions host;
    std::string log_level = "info";
};

CLI::App* add_prepare(CLI::App& app, PrepareOptions& options) {
    CLI::App* command =
        app.add_subcommand("prepare", "make the pool and import images and the runtime");
    command->add_option("--data", options.data, "the data directory")->required();
    command->add_option("--image", options.images, "of images/build; a layer behind its base")
        ->required();
    command->add_option("--runtime", options.runtime, "directory of agent and drivers")->required();
    command->add_option("--pool-bytes", options.pool_bytes,
                        "size of a new pool; default: a quarter of the free space");
    return command;
}

CLI::App* add_serve(CLI::App& app, HostOptions& options, std::string& log_level) {
    CLI::App* command = app.add_subcommand("serve", "make and kill sandboxes for the server");
    command->add_option("--data", options.data, "the data directory")->required();
    command->add_option("--runtime", options.runtime, "directory of agent and drivers")->required();
    command->add_option("--server-uid", options.server_uid, "the user id that may connect")
        ->required();
    command->add_option("--require-limit", options.require_limits,
                        "refuse to serve where it cannot be enforced (repeatable)");
    command->add_option("--ca-bundle", options.ca_bundle,
                        "certificates that every sandbox gets (PEM)");
    command->add_option("--log-level", log_level, "debug, info, warn or error");
    command
        ->add_option("--instance", options.instance,
                     "name of its cgroups; default: from the data directory")
        ->check([](const std::string& name) {
            const bool plain = name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
                               std::string::npos;
            return plain && name.size() <= 32 ? "" : "must be at most 32 of a-z, 0-9 and -";
        });
    return command;
}

int report(const Result<void>& result) {
    if (result) return 0;
    log_error(result.error().message);
    return kFailed;
}

int run(int argc, char** argv) {
    Options options;
    CLI::App app("The privileged part of Cloister: makes sandboxes and kills them.");
    app.require_subcommand(1);
    const CLI::App* prepare_command = add_prepare(app, options.prepare);
    add_serve(app, options.host, options.log_level);
    CLI11_PARSE(app, argc, argv);
    const auto level = log_level_from(options.log_level);
    log_open("cloister-warden", level.value_or(LogLevel::Info));
    os::ask_for_short_turns();
    if (!level) {
        log_error("--log-level must be debug, info, warn or error");
        return kUsage;
    }
    if (::geteuid() != 0) {
        log_error("cloister-warden must run as root");
        return kUsage;
    }
    return report(prepare_command->parsed() ? prepare(options.prepare) : serve(options.host));
}

}  // namespace
}  // namespace cloister::warden

int main(int argc, char** argv) {
    return cloister::warden::run(argc, argv);
}
