#include "ops/create_context.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

namespace {

Result<void> check(const CreateContextInput& input) {
    TRY_OK(check_id("sandbox", input.sandbox_id));
    TRY_OK(check_language(input.spec.language));
    TRY_OK(check_path("cwd", input.spec.cwd));
    return check_env("env", input.spec.env);
}

}  // namespace

Task<Result<std::shared_ptr<engine::Context>>> create_context(engine::Engine& engine,
                                                              engine::Principal caller,
                                                              CreateContextInput input) {
    Result<void> good = engine.check_open();
    if (good) good = check(input);
    if (!good) co_return std::move(good).error();
    const auto awake = co_await engine.sandboxes().awaken(caller.project, input.sandbox_id);
    if (!awake) co_return awake.error();
    good = check_language_in(awake->sandbox->spec(), input.spec.language);
    if (!good) co_return std::move(good).error();
    input.spec.cwd = absolute(input.spec.cwd);
    const auto context = engine.contexts().create(*awake->sandbox, std::move(input.spec));
    if (!context) co_return context.error();
    const Result<void> started = co_await engine::Context::start_interpreter(*context);
    if (started) co_return *context;
    (void)engine.contexts().forget(*awake->sandbox, **context);  // a row that stays is found again
    co_return make_error(ErrorKind::FailedPrecondition,
                         "the interpreter could not be started: " + started.error().message);
}

}  // namespace cloister::ops
