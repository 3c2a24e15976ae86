#include "ops/status.h"

#include "base/time.h"

namespace cloister::ops {

Task<Result<Status>> get_status(engine::Engine& engine) {
    const auto host = co_await engine.warden().hello();
    if (!host) co_return host.error();
    co_return Status{.host = *host,
                     .sandboxes = engine.sandboxes().live(),
                     .runs = engine.runs().active(),
                     .uptime_seconds = (steady_ms() - engine.started_at()) / 1000,
                     .warm = engine.sandboxes().pool_figures()};
}

Task<Result<void>> check_ready(engine::Engine& engine) {
    const Result<void> open = engine.check_open();
    if (!open) co_return open;
    const auto host = co_await engine.warden().hello();
    if (!host) co_return host.error();
    co_return Result<void>{};
}

}  // namespace cloister::ops
