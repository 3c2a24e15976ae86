// cloisterd: the server. It faces the network and has no privilege; everything that needs one is
// the warden's.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>

#include "base/log.h"
#include "base/time.h"
#include "engine/engine.h"
#include "faces/rest/face.h"
#include "http/server.h"
#include "loop/loop.h"
#include "os/fd.h"
#include "os/short_turns.h"
#include "programs/server/options.h"

namespace cloister::server {
namespace {

constexpr int kExitUsage = 2;
constexpr int kExitFailed = 70;
constexpr int kExitNotAllowed = 77;

constexpr int64_t kLastAnswersMs =
    2'000;  // for answers that are on their way when the service stops
constexpr std::chrono::milliseconds kPause{20};

struct Service {
    Loop& loop;
    std::shared_ptr<engine::Engine> engine;
    std::shared_ptr<rest::RestFace> face;
    std::shared_ptr<http::Server> server;
};

Result<void> enter_key(engine::Engine& engine, const Options& options) {
    if (!options.api_key) return {};
    auto entered =
        engine.keys().ensure(engine.local_project(), "CLOISTER_API_KEY", *options.api_key);
    if (!entered) return std::move(entered).error().within("CLOISTER_API_KEY");
    if (!engine.keys().check(*options.api_key)) {
        log_warn("the key of CLOISTER_API_KEY was revoked: it opens nothing");
    }
    return {};
}

Result<std::shared_ptr<Service>> assemble(Loop& loop, const Options& options) {
    auto engine = TRY(
        engine::Engine::create(options.data, {.life = options.life, .network = options.network}));
    TRY_OK(enter_key(*engine, options));
    auto face = std::make_shared<rest::RestFace>(engine, options.names, options.domain);
    std::shared_ptr<http::Server> server =
        TRY(http::Server::create(loop, options.listen, face->handler()));
    return std::make_shared<Service>(loop, std::move(engine), std::move(face), std::move(server));
}

Task<void> begin(std::shared_ptr<Service> service, std::optional<int> ready_fd) {
    service->engine->start();
    co_await service->engine->recovered();
    service->server->start();
    const std::string port = std::to_string(service->server->port());
    log_info("serving", {{"port", port}});
    if (!ready_fd) co_return;
    const os::Fd ready(*ready_fd);
    const Result<void> told = os::write_all(ready, port + "\n");
    if (!told) log_warn("--ready-fd", {{"error", told.error().message}});
}

Task<void> stop(std::shared_ptr<Service> service) {
    if (service->engine->draining()) co_return;  // a second signal
    log_info("stopping");
    service->engine->drain();
    service->server->stop();
    co_await service->engine->shut_down();
    const int64_t give_up = steady_ms() + kLastAnswersMs;
    while (service->server->connections() > 0 && steady_ms() < give_up) co_await sleep_for(kPause);
    service->loop.stop();
}

Task<void> stop_when_idle(std::shared_ptr<Service> service, int64_t idle_ms) {
    const std::chrono::milliseconds pause(std::clamp<int64_t>(idle_ms / 4, 10, 1'000));
    while (!service->engine->quiet() || steady_ms() - service->face->quiet_since() < idle_ms) {
        co_await sleep_for(pause);
    }
    log_info("nobody has used the service for a while");
    co_await stop(service);
}

Result<void> serve(const Options& options) {
    Loop loop;
    const std::shared_ptr<Service> service = TRY(assemble(loop, options));
    loop.on_stop_signal([service] { spawn(stop(service)); });
    loop.spawn(begin(service, options.ready_fd));
    if (options.idle_exit_ms) loop.spawn(stop_when_idle(service, *options.idle_exit_ms));
    loop.run();
    return {};
}

int report(const Error& error) {
    if (!error.message.empty()) std::fprintf(stderr, "cloisterd: %s\n", error.message.c_str());
    return error.kind == ErrorKind::InvalidArgument ? kExitUsage : kExitFailed;
}

int run(int argc, char** argv) {
    const Result<Options> options = parse_options(argc, argv);
    if (!options) return options.error().message.empty() ? 0 : report(options.error());
    if (::geteuid() == 0) {
        std::fputs(
            "cloisterd: it faces the network and must not be root: use `cloister serve`, or "
            "start it as another user\n",
            stderr);
        return kExitNotAllowed;
    }
    log_open("cloisterd", options->log_level);
    std::signal(SIGPIPE, SIG_IGN);  // sendfile() to a client that is gone has no flag against it
    os::ask_for_short_turns();
    const Result<void> served = serve(*options);
    return served ? 0 : report(served.error());
}

}  // namespace
}  // namespace cloister::server

int main(int argc, char** argv) {
    return cloister::server::run(argc, argv);
}
