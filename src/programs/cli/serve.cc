// cloister serve: prepares the machine, starts the programs and stays with them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/ids.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "os/file_lock.h"
#include "os/process.h"
#include "programs/cli/api.h"
#include "programs/cli/command.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/service_files.h"
#include "programs/cli/settings.h"
#include "programs/cli/supervisor.h"
#include "programs/cli/terminal.h"
#include "wire/capabilities.h"
#include "wire/json.h"
#include "wire/layout.h"

namespace cloister::cli {
namespace {

constexpr size_t kTailBytes = 4'000;
constexpr int64_t kOrphansGraceMs = 3'000;
// A service that is just starting or stopping holds the lock for so long.
constexpr int64_t kLockPatienceMs = 30'000;
constexpr std::chrono::milliseconds kLockPause{100};

struct ServeOptions {
    Place place;
    std::string listen, user = "cloister", runtime, log_level, min_tier, domain, ca_bundle;
    std::vector<std::string> images, require_limits, platform_allow, dns_servers;
    std::optional<int64_t> warm_sandboxes, warm_memory_mb, max_life_seconds;
    int64_t idle_exit_seconds = 0;
    bool detach = false, print_key = false, quiet = false;
};

enum class KeyOrigin { Known, New };
struct ServePlan {
    SupervisorSettings settings;
    std::vector<std::string> images;
    KeyOrigin key_origin = KeyOrigin::Known;
    os::Identity client_owner;  // of client.json
};

void add_options(CLI::App& app, ServeOptions& options) {
    add_place_options(app, options.place);
    app.add_option("--domain", options.domain,
                   "PORT-SANDBOX.DOMAIN become names of the ports of sandboxes");
    app.add_option("--listen", options.listen, "ADDRESS:PORT (default 127.0.0.1:8000)");
    app.add_flag("--detach", options.detach,
                 "go on in the background; answers when the service is ready");
    app.add_option("--idle-exit", options.idle_exit_seconds,
                   "end after so many seconds without a request or a sandbox")
        ->check(CLI::Range(1, 30 * 24 * 3600));
    app.add_flag("--print-key", options.print_key, "print the API key, not only when it is new");
    app.add_flag("--quiet", options.quiet, "print nothing when it is ready");
    app.add_option("--user", options.user,
                   "who the network-facing program runs as: a name or a number")
        ->capture_default_str();
    app.add_option("--image", options.images,
                   "base image, and layers on it behind it (CLOISTER_IMAGE, with colons between; "
                   "default the newest in /var/cache/cloister)");
    app.add_option("--runtime", options.runtime,
                   "what sandboxes get at /opt/cloister (default beside the programs)");
    app.add_option("--log-level", options.log_level, "debug, info (default), warn or error");
    app.add_option("--min-tier", options.min_tier, "refuse to start with a weaker isolation");
    app.add_option("--require-limits", options.require_limits,
                   fmt::format("refuse to start where one of these cannot be enforced: {}",
                               fmt::join(limit_names(), ", ")))
        ->delimiter(',');
    app.add_option("--warm-sandboxes", options.warm_sandboxes,
                   "warm sandboxes of each shape that was asked for lately (default 2; 0: none)")
        ->check(CLI::Range(0, 16));
    app.add_option("--warm-memory-mb", options.warm_memory_mb,
                   "of all warm sandboxes together (default a tenth of the host's)")
        ->check(CLI::PositiveNumber);
    app.add_option("--max-life-seconds", options.max_life_seconds,
                   "no sandbox lives longer (default 30 days)")
        ->check(CLI::PositiveNumber);
    app.add_option("--platform-allow", options.platform_allow,
                   "open this address, network or name of the platform deny set to the policies of "
                   "sandboxes (repeatable)");
    app.add_option(
        "--ca-bundle", options.ca_bundle,
        "certificates that programs in sandboxes trust, in place of the template's (PEM)");
    app.add_option("--dns-server", options.dns_servers,
                   "an address to ask for names, in place of the host's (repeatable)");
}

// What only cloisterd knows what to do with.
void add_server_options(SupervisorSettings& settings, const ServeOptions& options,
                        const FileSettings& file) {
    const auto add = [&settings](const char* name, const std::optional<int64_t>& flag,
                                 const std::optional<int64_t>& setting) {
        const auto number = flag ? flag : setting;
        if (!number) return;
        settings.server_options.emplace_back(name);
        settings.server_options.push_back(std::to_string(*number));
    };
    add("--warm-sandboxes", options.warm_sandboxes, file.warm_sandboxes);
    add("--warm-memory-mb", options.warm_memory_mb, file.warm_memory_mb);
    add("--max-life-seconds", options.max_life_seconds, file.max_life_seconds);
}

// For cloisterd, which tells egress.
std::string network_text(const ServeOptions& options, const FileSettings& file,
                         std::string_view ca_bundle) {
    const auto list = [](const std::vector<std::string>& flag,
                         const std::vector<std::string>& setting) {
        const auto& chosen = flag.empty() ? setting : flag;
        return json::array(chosen.begin(), chosen.end());
    };
    const json::object out{{"platform_allow", list(options.platform_allow, file.platform_allow)},
                           {"dns_servers", list(options.dns_servers, file.dns_servers)},
                           {"ca_bundle", !ca_bundle.empty()},
                           {"upstream_proxy", file.upstream_proxy.value_or("")}};
    return json::serialize(out);
}

// What the configuration requires of the host. The warden tries the limits; tiers are known here.
Result<void> add_requirements(SupervisorSettings& settings, const ServeOptions& options,
                              const FileSettings& file) {
    const std::string tier =
        options.min_tier.empty() ? file.min_tier.value_or("namespace") : options.min_tier;
    const auto tiers = check_tiers();
    const auto found = std::ranges::find(tiers, tier, &Check::name);
    if (found == tiers.end()) {
        return invalid_field(
            "min_tier", fmt::format("`{}` is no tier: it is namespace, gvisor or microvm", tier));
    }
    if (found->state != InForce::Enforced) {
        return make_error(
            ErrorKind::FailedPrecondition,
            fmt::format("min_tier is `{}`, which is {}: {}", tier, found->detail, found->way_out));
    }
    settings.require_limits =
        options.require_limits.empty() ? file.require_limits : options.require_limits;
    const std::vector<std::string> known = limit_names();
    for (const std::string& name : settings.require_limits) {
        if (std::ranges::find(known, name) != known.end()) continue;
        return invalid_field(
            "require_limits",
            fmt::format("`{}` is no limit of a host: it may be {}", name, fmt::join(known, ", ")));
    }
    return {};
}

std::string own_directory() {
    std::error_code failure;
    return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path().string();
}

// The newest base image that ./dev setup has built, and the layers on it; nothing if there is none.
std::vector<std::string> newest_images() {
    std::string newest;
    std::filesystem::file_time_type newest_time = std::filesystem::file_time_type::min();
    std::error_code failure;
    const std::filesystem::path cache = "/var/cache/cloister";
    for (const auto& entry : std::filesystem::directory_iterator(cache, failure)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with("base-") || !name.ends_with(".tar.zst")) continue;
        const auto time = entry.last_write_time(failure);
        if (failure || time <= newest_time) continue;
        newest = name;
        newest_time = time;
    }
    if (newest.empty()) return {};
    std::vector<std::string> images{cache / newest};
    const std::string on_it = newest.substr(newest.find('-'));
    for (const auto& entry : std::filesystem::directory_iterator(cache, failure)) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(on_it) && name != newest) images.push_back(entry.path().string());
    }
    return images;
}

std::vector<std::string> words_between_colons(const std::string& text) {
    std::vector<std::string> words;
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, ':');) {
        if (!word.empty()) words.push_back(word);
    }
    return words;
}

Result<std::vector<std::string>> find_images(const ServeOptions& options) {
    for (const std::vector<std::string>& choice :
         {options.images, words_between_colons(environment("CLOISTER_IMAGE")), newest_images()}) {
        if (!choice.empty()) return choice;
    }
    return make_error(
        ErrorKind::FailedPrecondition,
        "there is no base image: build one with `sudo ./dev setup`, or name one with --image");
}

Result<os::Identity> find_server_user(const std::string& user) {
    auto identity = os::find_identity(user);
    if (!identity) {
        return make_error(ErrorKind::FailedPrecondition,
                          fmt::format("{}: make one with `useradd --system --no-create-home {}`, "
                                      "or name another with --user",
                                      identity.error().message, user));
    }
    if (identity->uid == 0) {
        return make_error(ErrorKind::InvalidArgument,
                          "the network-facing program must not be root: give --user another one");
    }
    return identity;
}

// The user behind sudo, or root.
os::Identity caller() {
    const auto uid = os::find_identity(environment("SUDO_UID"));
    const auto gid = os::find_identity(environment("SUDO_GID"));
    if (!uid || !gid) return {};
    return {.uid = uid->uid, .gid = gid->gid};
}

Result<void> choose_key(ServePlan& plan) {
    std::string& key = plan.settings.key;
    key = environment("CLOISTER_API_KEY");
    if (!key.empty() && !is_api_key(key)) {
        return make_error(ErrorKind::InvalidArgument,
                          "CLOISTER_API_KEY must be `e2b_` and 40 digits of 0-9a-f");
    }
    if (key.empty()) key = read_client_file(plan.settings.data).value_or(ServiceAddress{}).key;
    if (is_api_key(key)) return {};
    key = new_api_key();
    plan.key_origin = KeyOrigin::New;
    return {};
}

Result<ServePlan> plan_service(const ServeOptions& options) {
    if (::geteuid() != 0) {
        return make_error(ErrorKind::PermissionDenied,
                          "making sandboxes needs root: run `sudo cloister serve` (the part that "
                          "faces the network "
                          "runs without any privilege)");
    }
    const FileSettings file = TRY(read_settings(options.place.config));
    const auto choose = [](const std::string& flag, const std::optional<std::string>& setting,
                           std::string_view usual) {
        return flag.empty() ? setting.value_or(std::string(usual)) : flag;
    };
    ServePlan plan;
    SupervisorSettings& settings = plan.settings;
    settings.data = TRY(find_data(options.place));
    settings.domain = choose(options.domain, file.domain, "");
    settings.listen = choose(options.listen, file.listen, "127.0.0.1:8000");
    settings.log_level = choose(options.log_level, file.log_level, "info");
    if (!log_level_from(settings.log_level)) {
        return invalid_field(
            "log_level",
            fmt::format("`{}` is no log level: debug, info, warn or error", settings.log_level));
    }
    settings.ca_bundle = choose(options.ca_bundle, file.ca_bundle, "");
    settings.network = network_text(options, file, settings.ca_bundle);
    settings.programs = own_directory();
    settings.runtime = options.runtime.empty()
                           ? std::filesystem::path(settings.programs).parent_path() / "runtime"
                           : std::filesystem::path(options.runtime);
    TRY_OK(add_requirements(settings, options, file));
    add_server_options(settings, options, file);
    settings.server = TRY(find_server_user(options.user));
    settings.idle_exit_ms = options.idle_exit_seconds * 1000;
    plan.images = TRY(find_images(options));
    plan.client_owner = caller();
    return plan;
}

Result<void> make_directories(const SupervisorSettings& settings) {
    const os::Identity root;
    const os::Identity agents{.uid = 0, .gid = settings.server.gid};
    TRY_OK(os::make_directory(settings.data, 0711, root));
    TRY_OK(os::make_directory(layout::state_directory(settings.data), 0700, settings.server));
    TRY_OK(os::make_directory(layout::run_directory(settings.data), 0755, root));
    TRY_OK(os::make_directory(layout::agents_directory(settings.data), 0750, agents));
    return os::make_directory(layout::join(settings.data, "log"), 0700, root);
}

std::string log_path(const std::string& data) {
    return layout::join(data, "log/service.log");
}

bool is_serving(const std::string& data) {
    const auto record = read_service_file(data);
    if (!record || !os::is_running(record->supervisor)) return false;
    const auto api = Api::create({.url = record->url, .key = ""});
    return api && api->get("/healthz");
}

Error already_running(const std::string& data) {
    const auto record = read_service_file(data);
    const std::string who =
        record ? fmt::format(" (process {}, {})", record->supervisor.pid, record->url)
               : std::string();
    return make_error(
        ErrorKind::FailedPrecondition,
        fmt::format("a service runs on {} already{}: `cloister stop` ends it", data, who));
}

enum class IfServing { IsAnError, IsAsGood };
// The lock of the data directory; no descriptor if another service serves it and that is as good.
Result<os::Fd> take_lock(const std::string& data, IfServing if_serving) {
    const std::string path = layout::join(layout::run_directory(data), "service.lock");
    const int64_t give_up = steady_ms() + (if_serving == IfServing::IsAsGood ? kLockPatienceMs : 0);
    for (;;) {
        auto lock = os::lock_file(path);
        if (lock || lock.error().kind != ErrorKind::FailedPrecondition) return lock;
        if (if_serving == IfServing::IsAsGood && is_serving(data)) return os::Fd();
        if (steady_ms() >= give_up) return already_running(data);
        std::this_thread::sleep_for(kLockPause);
    }
}

// A supervisor that was killed leaves its programs behind for a moment; they go before new ones
// come.
void end_orphans(const std::string& data) {
    const auto record = read_service_file(data);
    if (record) end_processes(record->children, kOrphansGraceMs);
}

Result<void> prepare(const ServePlan& plan) {
    const SupervisorSettings& settings = plan.settings;
    std::vector<std::string> command{settings.programs + "/cloister-warden",
                                     "prepare",
                                     "--data",
                                     settings.data,
                                     "--runtime",
                                     settings.runtime};
    for (const std::string& image : plan.images) command.insert(command.end(), {"--image", image});
    if (os::run_program(command)) return {};
    return make_error(ErrorKind::FailedPrecondition,
                      "preparing the storage failed; the lines above say why");
}

void greet(const ServeOptions& options, const ServePlan& plan, const std::string& url) {
    if (options.quiet) return;
    const bool shows_key = options.print_key || plan.key_origin == KeyOrigin::New;
    print(fmt::format("Cloister serves on {} (data in {})", url, plan.settings.data));
    if (shows_key) {
        print("API key (also in " + layout::client_file(plan.settings.data) + "):");
        print(plan.settings.key);
        print("try it:");
        print(fmt::format(
            "curl -s {}/v1/runs -H 'Authorization: Bearer {}' -H 'Content-Type: application/json' "
            "-d '{{\"code\": \"print(6 * 7)\"}}'",
            url, plan.settings.key));
    }
    std::fflush(stdout);
}

// Starts the programs and writes client.json; from here on the service can be used.
Result<std::string> start(Supervisor& supervisor, const ServePlan& plan) {
    std::string url = TRY(supervisor.start());
    TRY_OK(write_client_file(plan.settings.data, {.url = url, .key = plan.settings.key},
                             plan.client_owner));
    return url;
}

LogLevel log_level_of(const ServePlan& plan) {
    return log_level_from(plan.settings.log_level).value_or(LogLevel::Info);
}

Result<int> serve_here(const ServeOptions& options, const ServePlan& plan, os::Fd signals) {
    log_open("cloister", log_level_of(plan));
    Supervisor supervisor =
        TRY(Supervisor::create(plan.settings, std::move(signals), std::nullopt));
    const std::string url = TRY(start(supervisor, plan));
    greet(options, plan, url);
    return supervisor.run();
}

// The daemon's side: says over `pipe` how the start went, and stays.
Result<int> serve_as_daemon(const ServePlan& plan, os::Fd signals, os::Fd pipe) {
    const std::string path = log_path(plan.settings.data);
    LogFile log = TRY(LogFile::open(path));
    log_open("cloister", log_level_of(plan));
    Supervisor supervisor =
        TRY(Supervisor::create(plan.settings, std::move(signals), std::move(log)));
    const auto url = start(supervisor, plan);
    if (!url) {
        log_error("the service did not start", {{"reason", url.error().message}});
        (void)os::write_all(pipe,
                            "-" + url.error().message);  // the parent may have been interrupted
        return kNoService;
    }
    log_info("the service is ready", {{"url", *url}});
    (void)os::write_all(pipe, "+" + *url);  // as above
    pipe.reset();
    return supervisor.run();
}

// The parent's side of --detach.
Result<int> await_daemon(const ServeOptions& options, const ServePlan& plan, const os::Fd& pipe,
                         uint64_t log_place) {
    const Progress progress("starting the service");
    const std::string word = TRY(os::read_all(pipe, limits::kKiB * 64));
    if (word.starts_with('+')) {
        greet(options, plan, word.substr(1));
        return 0;
    }
    const std::string path = log_path(plan.settings.data);
    const std::string tail = log_since(path, log_place, kTailBytes);
    std::fwrite(tail.data(), 1, tail.size(), stderr);
    say("the service did not start: " + (word.empty() ? "its supervisor ended" : word.substr(1)));
    say("its log is " + path);
    return kNoService;
}

Result<int> serve(const ServeOptions& options) {
    ServePlan plan = TRY(plan_service(options));
    TRY_OK(make_directories(plan.settings));
    const os::Fd lock = TRY(
        take_lock(plan.settings.data, options.detach ? IfServing::IsAsGood : IfServing::IsAnError));
    if (!lock.open()) return 0;
    TRY_OK(choose_key(plan));
    end_orphans(plan.settings.data);
    TRY_OK(prepare(plan));
    os::Fd signals = TRY(os::make_signal_fd({SIGTERM, SIGINT, SIGHUP}));
    if (!options.detach) return serve_here(options, plan, std::move(signals));
    const uint64_t log_place = log_size(log_path(plan.settings.data));
    os::Detached detached = TRY(os::detach());
    if (detached.side == os::Side::Parent)
        return await_daemon(options, plan, detached.pipe, log_place);
    return serve_as_daemon(plan, std::move(signals), std::move(detached.pipe));
}

}  // namespace

int serve_command(const Words& words) {
    ServeOptions options;
    CLI::App app("Runs the service: sandboxes, and the REST API in front of them",
                 "cloister serve");
    add_options(app, options);
    if (const auto code = parse_words(app, words)) return *code;
    const Result<int> code = serve(options);
    return code ? *code : say_error(code.error());
}

}  // namespace cloister::cli
