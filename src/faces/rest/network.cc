// getNetwork, setNetwork, getNetworkLog.
#include "base/number.h"
#include "egress/policy_json.h"
#include "faces/rest/body.h"
#include "faces/rest/decode.h"
#include "faces/rest/handlers.h"
#include "ops/get_network.h"
#include "ops/get_network_log.h"
#include "ops/set_network.h"

namespace cloister::rest {

Task<Result<Answer>> get_network(Call& call) {
    const auto policy = ops::get_network(*call.engine, call.caller, call.parameters[0]);
    if (!policy) co_return policy.error();
    co_return Answer::json(200, egress::policy_json(*policy));
}

Task<Result<Answer>> set_network(Call& call) {
    const Result<std::string> body = co_await json_body(call);
    if (!body) co_return body.error();
    Result<egress::PolicySpec> policy = decode_network(*body);
    if (!policy) co_return std::move(policy).error();
    ops::SetNetworkInput input{.sandbox_id = call.parameters[0], .policy = std::move(*policy)};
    const auto now = co_await ops::set_network(*call.engine, call.caller, std::move(input));
    if (!now) co_return now.error();
    co_return Answer::json(200, egress::policy_json(*now));
}

Task<Result<Answer>> get_network_log(Call& call) {
    const std::string after = http::query_value(call.request.query(), "after").value_or("0");
    const auto number = whole_number<int64_t>(after);
    if (!number || *number < 0) {
        co_return make_error(ErrorKind::InvalidArgument,
                             "`after` in the query must be the number of an entry: 0 or more");
    }
    ops::GetNetworkLogInput input{.sandbox_id = call.parameters[0]};
    input.query.after = *number;
    input.query.run = http::query_value(call.request.query(), "run_id").value_or("");
    const auto log = ops::get_network_log(*call.engine, call.caller, input);
    if (!log) co_return log.error();
    co_return Answer::json(200, *log);
}

}  // namespace cloister::rest
