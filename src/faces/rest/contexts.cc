// createContext, listContexts, getContext, restartContext, deleteContext.
#include "faces/rest/body.h"
#include "faces/rest/decode.h"
#include "faces/rest/encode.h"
#include "faces/rest/handlers.h"
#include "ops/create_context.h"
#include "ops/delete_context.h"
#include "ops/get_context.h"
#include "ops/list_contexts.h"
#include "ops/restart_context.h"

namespace cloister::rest {

Task<Result<Answer>> create_context(Call& call) {
    const Result<std::string> body = co_await json_body(call);
    if (!body) co_return body.error();
    Result<engine::ContextSpec> spec = decode_context(*body);
    if (!spec) co_return std::move(spec).error();
    ops::CreateContextInput input{.sandbox_id = call.parameters[0], .spec = std::move(*spec)};
    const auto made = co_await ops::create_context(*call.engine, call.caller, std::move(input));
    if (!made) co_return made.error();
    co_return Answer::json(201, context_json(**made));
}

Task<Result<Answer>> list_contexts(Call& call) {
    const auto contexts = ops::list_contexts(*call.engine, call.caller, call.parameters[0]);
    if (!contexts) co_return contexts.error();
    json::array list;
    for (const auto& context : *contexts) list.push_back(context_json(*context));
    co_return Answer::json(200, {{"contexts", std::move(list)}});
}

Task<Result<Answer>> get_context(Call& call) {
    const auto place =
        ops::get_context(*call.engine, call.caller, call.parameters[0], call.parameters[1]);
    if (!place) co_return place.error();
    co_return Answer::json(200, context_json(*place->context));
}

Task<Result<Answer>> restart_context(Call& call) {
    const auto context = co_await ops::restart_context(*call.engine, call.caller,
                                                       call.parameters[0], call.parameters[1]);
    if (!context) co_return context.error();
    co_return Answer::json(200, context_json(**context));
}

Task<Result<Answer>> delete_context(Call& call) {
    const auto gone = co_await ops::delete_context(*call.engine, call.caller, call.parameters[0],
                                                   call.parameters[1]);
    if (!gone) co_return gone.error();
    co_return Answer::nothing();
}

}  // namespace cloister::rest
