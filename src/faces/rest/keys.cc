// createKey, listKeys, revokeKey.
#include "faces/rest/body.h"
#include "faces/rest/decode.h"
#include "faces/rest/encode.h"
#include "faces/rest/handlers.h"
#include "ops/create_key.h"
#include "ops/list_keys.h"
#include "ops/revoke_key.h"

namespace cloister::rest {

Task<Result<Answer>> create_key(Call& call) {
    const Result<std::string> body = co_await json_body(call);
    if (!body) co_return body.error();
    const Result<std::string> name = decode_key_name(*body);
    if (!name) co_return name.error();
    const auto made = ops::create_key(*call.engine, call.caller, *name);
    if (!made) co_return made.error();
    json::object key = key_json(made->info);
    key["key"] = made->text;
    co_return Answer::json(201, key);
}

Task<Result<Answer>> list_keys(Call& call) {
    json::array list;
    for (const engine::KeyInfo& key : ops::list_keys(*call.engine, call.caller)) {
        list.push_back(key_json(key));
    }
    co_return Answer::json(200, {{"keys", std::move(list)}});
}

Task<Result<Answer>> revoke_key(Call& call) {
    const auto revoked = ops::revoke_key(*call.engine, call.caller, call.parameters[0]);
    if (!revoked) co_return revoked.error();
    co_return Answer::nothing();
}

}  // namespace cloister::rest
