#include "engine/ports.h"

#include <utility>

namespace cloister::engine {
namespace {

bool flag_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_bool() && value->as_bool();
}

}  // namespace

Task<Result<json::array>> list_ports(std::shared_ptr<Sandbox> sandbox) {
    const Sandbox::Use use(sandbox);
    const auto answer = co_await call_agent(sandbox->agent_socket(), {{"op", "port.list"}});
    if (!answer) co_return answer.error();
    json::array out;
    const json::value* list = answer->if_contains("ports");
    if (list == nullptr || !list->is_array()) co_return out;
    for (const json::value& entry : list->as_array()) {
        const json::value* port =
            entry.is_object() ? entry.as_object().if_contains("port") : nullptr;
        if (port == nullptr || !port->is_int64()) continue;
        out.push_back(json::object{{"port", port->as_int64()},
                                   {"published", flag_of(entry.as_object(), "published")},
                                   {"listening", flag_of(entry.as_object(), "listening")}});
    }
    co_return out;
}

Task<Result<void>> set_port(std::shared_ptr<Sandbox> sandbox, uint16_t port, PortState state) {
    const Sandbox::Use use(sandbox);
    // What is closed is closed at once, whatever the agent says.
    if (state == PortState::Closed) sandbox->published_ports().erase(port);
    const auto answer = co_await call_agent(
        sandbox->agent_socket(),
        {{"op", "port.publish"}, {"port", port}, {"published", state == PortState::Published}});
    if (!answer) co_return answer.error();
    if (state == PortState::Published) sandbox->published_ports().insert(port);
    co_return Result<void>{};
}

Task<Result<std::shared_ptr<PortConnection>>> PortConnection::open(std::shared_ptr<Sandbox> sandbox,
                                                                   uint16_t port) {
    auto agent = co_await AgentConnection::open(sandbox->agent_socket());
    if (!agent) co_return std::move(agent).error();
    const auto answer =
        co_await agent->call({{"op", "port.connect"}, {"port", port}, {"authorised", true}});
    if (!answer) co_return answer.error();
    co_return std::shared_ptr<PortConnection>(
        new PortConnection(std::move(sandbox), std::move(*agent)));
}

Task<Result<std::string>> PortConnection::read_some() {
    Result<Frame> frame = co_await agent_.next();
    if (!frame) co_return std::move(frame).error();
    if (frame->kind != FrameKind::Data) {
        co_return make_error(ErrorKind::Unavailable, "the connection to the port broke off");
    }
    co_return std::move(frame->payload);
}

Task<Result<void>> PortConnection::write(std::string bytes) {
    co_return co_await agent_.send_chunked(FrameKind::Data, std::move(bytes));
}

}  // namespace cloister::engine
