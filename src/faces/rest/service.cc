// healthz, readyz, getStatus, getCapabilities, getLimits, getPool.
#include "faces/rest/encode.h"
#include "faces/rest/handlers.h"
#include "ops/get_capabilities.h"
#include "ops/get_limits.h"
#include "ops/get_pool.h"
#include "ops/status.h"

namespace cloister::rest {

Task<Result<Answer>> healthz(Call&) {
    co_return Answer::json(200, health_json());
}

Task<Result<Answer>> readyz(Call& call) {
    const Result<void> ready = co_await ops::check_ready(*call.engine);
    if (!ready) co_return make_error(ErrorKind::Unavailable, ready.error().message);
    co_return Answer::json(200, health_json());
}

Task<Result<Answer>> get_status(Call& call) {
    const auto status = co_await ops::get_status(*call.engine);
    if (!status) co_return status.error();
    co_return Answer::json(200, status_json(*status));
}

Task<Result<Answer>> get_pool(Call& call) {
    const auto pool = co_await ops::get_pool(*call.engine, call.caller.project);
    if (!pool) co_return pool.error();
    co_return Answer::json(200, pool_json(*pool));
}

Task<Result<Answer>> get_capabilities(Call& call) {
    const auto all = co_await ops::get_capabilities(*call.engine);
    if (!all) co_return all.error();
    co_return Answer::json(200, capabilities_json(*all));
}

Task<Result<Answer>> get_limits(Call&) {
    co_return Answer::json(200, limits_json(ops::get_limits()));
}

}  // namespace cloister::rest
