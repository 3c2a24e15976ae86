#include "engine/spooled_output.h"

#include <algorithm>
#include <utility>

#include "engine/agent.h"

namespace cloister::engine {
namespace {

uint64_t number_in(const json::object& answer, std::string_view name) {
    const json::value* value = answer.if_contains(name);
    const bool good = value != nullptr && value->is_int64();
    return good ? static_cast<uint64_t>(std::max<int64_t>(value->as_int64(), 0)) : 0;
}

}  // namespace

Task<Result<SpooledOutput>> read_output(std::string socket, OutputRange range) {
    Result<AgentConnection> agent = co_await AgentConnection::open(std::move(socket));
    if (!agent) co_return std::move(agent).error();
    const auto answer = co_await agent->call({{"op", "run.output"},
                                              {"run", range.run},
                                              {"stream", range.stream},
                                              {"offset", range.offset},
                                              {"length", range.length}});
    if (!answer) co_return answer.error();
    const json::value* goes_on = answer->if_contains("goes_on");
    SpooledOutput out{.size = number_in(*answer, "size"),
                      .goes_on = goes_on != nullptr && goes_on->is_bool() && goes_on->as_bool(),
                      .lost = number_in(*answer, "lost"),
                      .next = source_of(std::move(*agent))};
    co_return out;
}

}  // namespace cloister::engine
