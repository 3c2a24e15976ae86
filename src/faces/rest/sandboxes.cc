// createSandbox, listSandboxes, getSandbox, deleteSandbox.
#include "faces/rest/body.h"
#include "faces/rest/decode.h"
#include "faces/rest/encode.h"
#include "faces/rest/handlers.h"
#include "ops/create_sandbox.h"
#include "ops/delete_sandbox.h"
#include "ops/get_sandbox.h"
#include "ops/list_sandboxes.h"

namespace cloister::rest {

Task<Result<Answer>> create_sandbox(Call& call) {
    const Result<std::string> body = co_await json_body(call);
    if (!body) co_return body.error();
    Result<engine::SandboxSpec> spec = decode_sandbox(*body);
    if (!spec) co_return std::move(spec).error();
    ops::CreateSandboxInput input{.spec = std::move(*spec)};
    const auto made = co_await ops::create_sandbox(*call.engine, call.caller, std::move(input));
    if (!made) co_return made.error();
    co_return Answer::json(201, sandbox_json(*made));
}

Task<Result<Answer>> list_sandboxes(Call& call) {
    json::array list;
    for (const engine::SandboxInfo& sandbox : ops::list_sandboxes(*call.engine, call.caller)) {
        list.push_back(sandbox_json(sandbox));
    }
    co_return Answer::json(200, {{"sandboxes", std::move(list)}});
}

Task<Result<Answer>> get_sandbox(Call& call) {
    const auto sandbox = ops::get_sandbox(*call.engine, call.caller, call.parameters[0]);
    if (!sandbox) co_return sandbox.error();
    co_return Answer::json(200, sandbox_json(*sandbox));
}

Task<Result<Answer>> delete_sandbox(Call& call) {
    const auto gone = co_await ops::delete_sandbox(*call.engine, call.caller, call.parameters[0]);
    if (!gone) co_return gone.error();
    co_return Answer::nothing();
}

}  // namespace cloister::rest
