// healthz, readyz, getStatus, getPool.
#include "faces/rest/encode.h"
#include "faces/rest/handlers.h"
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

}  // namespace cloister::rest
