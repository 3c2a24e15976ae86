#include "engine/agent_state.h"

#include <algorithm>
#include <memory>

#include "base/ids.h"
#include "base/limits.h"
#include "base/process_limits.h"
#include "engine/agent.h"

namespace cloister::engine {
namespace {

constexpr std::chrono::seconds kAnswerTime{10};
constexpr size_t kRunsMax = limits::kUnclaimedRunsMax + limits::kContextsMax;
constexpr size_t kWordMax = limits::kLanguageMax;  // no other word is longer
// An entry takes some 120 bytes.
constexpr size_t kAnswerMax = 256 * (kRunsMax + limits::kContextsMax);

// The objects of a list, at most so many.
std::vector<const json::object*> objects_in(const json::object& answer, std::string_view name,
                                            size_t most) {
    std::vector<const json::object*> out;
    const json::value* list = answer.if_contains(name);
    if (list == nullptr || !list->is_array()) return out;
    for (const json::value& entry : list->as_array()) {
        if (entry.is_object() && out.size() < most) out.push_back(&entry.as_object());
    }
    return out;
}

std::string word_in(const json::object& entry, std::string_view name) {
    const json::value* value = entry.if_contains(name);
    if (value == nullptr || !value->is_string() || value->as_string().size() > kWordMax) return {};
    return std::string(value->as_string());
}

bool flag_in(const json::object& entry, std::string_view name) {
    const json::value* value = entry.if_contains(name);
    return value != nullptr && value->is_bool() && value->as_bool();
}

int64_t number_in(const json::object& answer, std::string_view name) {
    const json::value* value = answer.if_contains(name);
    return value != nullptr && value->is_int64() ? value->as_int64() : 0;
}

std::vector<uint16_t> ports_in(const json::object& answer) {
    std::vector<uint16_t> out;
    const json::value* list = answer.if_contains("published");
    if (list == nullptr || !list->is_array()) return out;
    for (const json::value& port : list->as_array()) {
        const bool good = port.is_int64() && port.as_int64() > 0 && port.as_int64() <= UINT16_MAX;
        if (good && out.size() < limits::kPortsPublishedMax) {
            out.push_back(static_cast<uint16_t>(port.as_int64()));
        }
    }
    return out;
}

Task<void> close_late(std::weak_ptr<AgentConnection> connection) {
    co_await sleep_for(kAnswerTime);
    if (const auto still = connection.lock()) still->close();
}

}  // namespace

bool AgentState::knows(std::string_view run) const {
    return std::ranges::find(runs, run) != runs.end();
}

Task<Result<AgentState>> ask_agent_state(std::string socket) {
    auto opened = co_await AgentConnection::open(std::move(socket), kAnswerMax);
    if (!opened) co_return std::move(opened).error();
    const auto agent = std::make_shared<AgentConnection>(std::move(*opened));
    spawn(close_late(agent));
    const auto answer = co_await agent->call({{"op", "state"}});
    if (!answer && answer.error().kind == ErrorKind::Cancelled) {
        co_return make_error(ErrorKind::Unavailable, "the sandbox's agent did not answer in time");
    }
    if (!answer) co_return answer.error();
    co_return decode_agent_state(*answer);
}

AgentState decode_agent_state(const json::object& answer) {
    AgentState state;
    for (const json::object* entry : objects_in(answer, "contexts", limits::kContextsMax)) {
        AgentContext context{
            .id = word_in(*entry, "context"),
            .language = word_in(*entry, "language"),
            .ready = flag_in(*entry, "ready"),
            .started_as = word_in(*entry, "started") == "forked" ? "forked" : "plain"};
        if (is_id(context.id) && !context.language.empty())
            state.contexts.push_back(std::move(context));
    }
    for (const json::object* entry : objects_in(answer, "runs", kRunsMax)) {
        std::string id = word_in(*entry, "run");
        if (is_id(id)) state.runs.push_back(std::move(id));
    }
    state.published = ports_in(answer);
    state.processes = number_in(answer, "processes");
    state.cpu_ms = number_in(answer, "cpu_ms");
    return state;
}

}  // namespace cloister::engine
