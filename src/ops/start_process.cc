#include "ops/start_process.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

namespace {

Result<void> check(const StartProcessInput& input) {
    const engine::ProcessSpec& spec = input.spec;
    TRY_OK(check_id("sandbox", input.sandbox_id));
    for (const std::string& word : spec.argv) {
        if (word.find('\0') != std::string::npos) {
            return invalid_field("argv", "`argv` must not hold a NUL character");
        }
    }
    if (spec.user != "user" && spec.user != "root") {
        return invalid_field("user", "`user` must be `user` or `root`");
    }
    if (spec.cwd) TRY_OK(check_path("cwd", *spec.cwd));
    if (spec.stdin_path) TRY_OK(check_path("stdin_path", *spec.stdin_path));
    return check_env("env", spec.env);
}

}  // namespace

Task<Result<json::object>> start_process(engine::Engine& engine, engine::Principal caller,
                                         StartProcessInput input) {
    Result<void> good = engine.check_open();
    if (good) good = check(input);
    if (!good) co_return std::move(good).error();
    const auto awake = co_await engine.sandboxes().awaken(caller.project, input.sandbox_id);
    if (!awake) co_return awake.error();
    co_return co_await engine::start_process(awake->sandbox, std::move(input.spec));
}

}  // namespace cloister::ops
