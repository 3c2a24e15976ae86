// listPorts, publishPort, closePort, and what goes to a server in a sandbox.
#include <fmt/format.h>

#include <utility>

#include "faces/rest/body.h"
#include "faces/rest/decode.h"
#include "faces/rest/error_table.h"
#include "faces/rest/gate.h"
#include "faces/rest/handlers.h"
#include "faces/rest/port_address.h"
#include "http/proxy.h"
#include "ops/close_port.h"
#include "ops/connect_port.h"
#include "ops/list_ports.h"
#include "ops/publish_port.h"

namespace cloister::rest {
namespace {

class PortUpstream final : public http::Upstream {
  public:
    explicit PortUpstream(std::shared_ptr<engine::PortConnection> connection)
        : connection_(std::move(connection)) {}

    Task<Result<std::string>> read_some() override { return connection_->read_some(); }
    Task<Result<void>> write(std::string bytes) override {
        return connection_->write(std::move(bytes));
    }
    void close() override { connection_->close(); }

  private:
    const std::shared_ptr<engine::PortConnection> connection_;
};

std::string path_prefix(const PortAddress& address) {
    return fmt::format("/v1/sandboxes/{}/ports/{}", address.sandbox_id, address.port);
}

// Where others reach it: by its own name, or below ours.
std::string url_of(const Call& call, const PortAddress& address) {
    const std::string_view host = call.request.header("Host");
    if (call.domain.empty()) return fmt::format("http://{}{}/", host, path_prefix(address));
    const size_t colon = host.rfind(':');
    const std::string_view port =
        colon == std::string_view::npos ? std::string_view() : host.substr(colon);
    return fmt::format("http://{}-{}.{}{}/", address.port, address.sandbox_id, call.domain, port);
}

Result<PortAddress> address_of(const Call& call) {
    const auto port = port_in(call.parameters[1]);
    if (port) return PortAddress{.sandbox_id = call.parameters[0], .port = *port};
    return make_error(
        ErrorKind::NotFound,
        fmt::format("`{}` is no port: it is a number from 1 to 65535 without zeros in "
                    "front",
                    call.parameters[1]));
}

json::object port_json(const Call& call, const PortAddress& address, bool listening,
                       bool published) {
    return {{"port", address.port},
            {"listening", listening},
            {"published", published},
            {"url", url_of(call, address)}};
}

http::ProxyPlan plan_of(const Call& call, const PortAddress& address, PortRoute route) {
    const http::Request& request = call.request;
    http::ProxyPlan plan;
    plan.target = request.path();
    plan.host = request.header("Host");
    if (route == PortRoute::Path) {
        plan.prefix = path_prefix(address);
        plan.target.erase(0, plan.prefix.size());
        plan.host = fmt::format("localhost:{}", address.port);
        plan.added.emplace("X-Forwarded-Prefix", plan.prefix);
    }
    if (!request.query().empty()) plan.target += fmt::format("?{}", request.query());
    // A key of ours is for us alone.
    plan.hidden.emplace_back("X-API-Key");
    if (key_in(request.headers()).starts_with("e2b_")) plan.hidden.emplace_back("Authorization");
    const std::string_view peer = request.peer();
    plan.added.emplace("X-Forwarded-For", std::string(peer.substr(0, peer.rfind(':'))));
    plan.added.emplace("X-Forwarded-Host", std::string(request.header("Host")));
    plan.added.emplace("X-Forwarded-Proto", "http");
    return plan;
}

Answer bad_gateway(const Call& call, const Error& error) {
    return {.status = 502, .body = error_body(error, call.request_id)};
}

}  // namespace

Task<Result<Answer>> list_ports(Call& call) {
    auto list = co_await ops::list_ports(*call.engine, call.caller, call.parameters[0]);
    if (!list) co_return std::move(list).error();
    json::array out;
    for (const json::value& entry : *list) {
        const json::object& port = entry.as_object();
        const PortAddress address{.sandbox_id = call.parameters[0],
                                  .port = static_cast<uint16_t>(port.at("port").as_int64())};
        out.push_back(port_json(call, address, port.at("listening").as_bool(),
                                port.at("published").as_bool()));
    }
    co_return Answer::json(200, {{"ports", std::move(out)}});
}

Task<Result<Answer>> publish_port(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    const auto port = decode_port(*text);
    if (!port) co_return port.error();
    const auto done =
        co_await ops::publish_port(*call.engine, call.caller, call.parameters[0], *port);
    if (!done) co_return done.error();
    const PortAddress address{.sandbox_id = call.parameters[0], .port = *port};
    co_return Answer::json(200, {{"port", *port}, {"url", url_of(call, address)}});
}

Task<Result<Answer>> close_port(Call& call) {
    const auto address = address_of(call);
    if (!address) co_return address.error();
    const auto done =
        co_await ops::close_port(*call.engine, call.caller, call.parameters[0], address->port);
    if (!done) co_return done.error();
    co_return Answer::nothing();
}

Task<Result<Answer>> pass_to_port(Call& call, PortAddress address, PortRoute route) {
    std::optional<engine::Principal> caller;
    if (!call.caller.project.empty()) caller = call.caller;
    const ops::ConnectPortInput input{.sandbox_id = address.sandbox_id, .port = address.port};
    const auto connection = co_await ops::connect_port(*call.engine, caller, input);
    if (!connection && connection.error().kind == ErrorKind::Unavailable) {
        co_return bad_gateway(call, connection.error());
    }
    if (!connection) co_return connection.error();
    const auto passed = co_await http::proxy(call.request, call.response,
                                             std::make_shared<PortUpstream>(*connection),
                                             plan_of(call, address, route));
    if (passed) co_return Answer::streamed(*passed);
    if (call.response.started()) co_return passed.error();
    co_return bad_gateway(call, passed.error());
}

Task<Result<Answer>> use_port(Call& call) {
    const auto address = address_of(call);
    if (!address) co_return address.error();
    co_return co_await pass_to_port(call, *address, PortRoute::Path);
}

}  // namespace cloister::rest
