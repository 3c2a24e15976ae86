#include "ops/get_pool.h"

#include <utility>

#include "base/limits.h"

namespace cloister::ops {

Task<Result<PoolUse>> get_pool(engine::Engine& engine, std::string project) {
    const auto pool = co_await engine.warden().pool();
    if (!pool) co_return pool.error();
    PoolUse use{.bytes = pool->bytes,
                .free = pool->free,
                .template_bytes = pool->template_bytes,
                .sandboxes = {}};
    for (const engine::SandboxInfo& sandbox : engine.sandboxes().list(project)) {
        const auto usage = co_await engine.warden().usage(sandbox.id);
        if (!usage && usage.error().kind == ErrorKind::NotFound) continue;  // it has just gone
        if (!usage) co_return usage.error();
        use.sandboxes.push_back({.id = sandbox.id,
                                 .used = usage->disk_bytes,
                                 .max = sandbox.spec.disk_mb * limits::kMiB});
    }
    co_return use;
}

}  // namespace cloister::ops
