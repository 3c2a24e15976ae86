// cloister-egress: carries what leaves sandboxes, and judges it. It has no privilege; its listeners
// live in the sandboxes' network namespaces and end with it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "os/net.h"
#include "os/short_turns.h"
#include "programs/egressd/door.h"
#include "wire/layout.h"

namespace cloister::egressd {
namespace {

constexpr int kFailed = 70, kUsage = 2, kNotAllowed = 77;

// What the program is while it runs.
struct Service {
    Loop& loop;
    std::shared_ptr<Door> door;
    int code = 0;
};

Task<void> serve(Service& service, std::string socket) {
    const auto door = Door::open(socket);
    if (!door) {
        log_error(door.error().message);
        service.code = kFailed;
        service.loop.stop();
        co_return;
    }
    service.door = *door;
    co_await Door::serve(*door);
}

void stop(Service& service) {
    if (service.door) service.door->close();
    service.loop.stop();
}

int run(int argc, char** argv) {
    std::string data, level = "info";
    CLI::App app("cloister-egress: carries what leaves sandboxes; `cloister serve` starts it");
    app.add_option("--data", data, "the data directory")->required();
    app.add_option("--log-level", level, "debug, info, warn or error");
    CLI11_PARSE(app, argc, argv);
    const auto known = log_level_from(level);
    log_open("cloister-egress", known.value_or(LogLevel::Info));
    if (!known) return kUsage;
    if (::geteuid() == 0) {
        std::fputs("cloister-egress: it reads what sandboxes send and must not be root\n", stderr);
        return kNotAllowed;
    }
    os::ask_for_short_turns();
    (void)os::raise_descriptor_limit();  // six for each connection
    Loop loop;
    Service service{.loop = loop, .door = nullptr};
    loop.on_stop_signal([&service] { stop(service); });
    loop.spawn(serve(service, layout::egress_socket(data)));
    loop.run();
    return service.code;
}

}  // namespace
}  // namespace cloister::egressd

int main(int argc, char** argv) {
    return cloister::egressd::run(argc, argv);
}
