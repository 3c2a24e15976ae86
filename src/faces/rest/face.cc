#include "faces/rest/face.h"

#include <fmt/format.h>

#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "base/time.h"
#include "faces/rest/error_table.h"
#include "faces/rest/handlers.h"

namespace cloister::rest {
namespace {

bool is_health_check(std::string_view path) {
    return path == "/healthz" || path == "/readyz";
}

http::Headers headers_for(const Call& call) {
    return {{"Content-Type", "application/json"},
            {"Cache-Control", "no-store"},
            {"X-Request-Id", call.request_id}};
}

// What HTTP wants beside the body of an error.
void add_error_headers(http::Headers& headers, const Error& error) {
    if (error.kind == ErrorKind::Unauthenticated) headers.emplace("WWW-Authenticate", "Bearer");
    const bool again = error.kind == ErrorKind::ResourceExhausted ||
                       error.kind == ErrorKind::Unavailable ||
                       error.kind == ErrorKind::DeadlineExceeded;
    if (again) headers.emplace("Retry-After", "1");
}

Answer method_not_allowed(const Call& call, std::string allow) {
    const Error error = make_error(
        ErrorKind::InvalidArgument,
        fmt::format("{} is not a method of this path: use {}", call.request.method(), allow));
    return {.status = 405,
            .body = error_body(error, call.request_id),
            .sent = Answer::Sent::No,
            .headers = {{"Allow", std::move(allow)}}};
}

void log_request(const Call& call, int status, int64_t began) {
    log_info("request", {{"method", std::string(call.request.method())},
                         {"path", std::string(call.request.path())},
                         {"status", std::to_string(status)},
                         {"ms", std::to_string(steady_ms() - began)},
                         {"request_id", call.request_id},
                         {"peer", std::string(call.request.peer())},
                         {"key_id", call.caller.key_id}});
}

}  // namespace

RestFace::RestFace(std::shared_ptr<engine::Engine> engine, std::vector<std::string> names,
                   std::string domain)
    : engine_(std::move(engine)),
      gate_(std::move(names)),
      domain_(std::move(domain)),
      last_request_(steady_ms()) {}

http::Handler RestFace::handler() {
    return [self = shared_from_this()](http::Request& request, http::Response& response) {
        return handle(self, request, response);
    };
}

int64_t RestFace::quiet_since() const {
    return open_ > 0 ? INT64_MAX : last_request_;
}

Task<void> RestFace::handle(std::shared_ptr<RestFace> self, http::Request& request,
                            http::Response& response) {
    const int64_t began = steady_ms();
    const bool counts = !is_health_check(request.path());
    if (counts) ++self->open_;
    Call call{.request = request,
              .response = response,
              .engine = self->engine_,
              .caller = {},
              .parameters = {},
              .request_id = new_id(),
              .domain = self->domain_};
    Result<Answer> result = co_await self->dispatch(call);
    const int status = co_await self->answer(call, std::move(result));
    log_request(call, status, began);
    if (counts) --self->open_;
    if (counts) self->last_request_ = steady_ms();
}

Task<Result<Answer>> RestFace::dispatch(Call& call) {
    // A name of a server in a sandbox is that server's: which pages may call it is its affair.
    const auto address = port_address_in(call.request.header("Host"), domain_);
    if (address) co_return co_await dispatch_to_port(call, *address);
    const Result<void> welcome = gate_.check(call.request.headers());
    if (!welcome) co_return welcome.error();
    auto found = find_route(call.request.method(), call.request.path());
    if (const auto* others = std::get_if<OtherMethods>(&found)) {
        co_return method_not_allowed(call, others->allow);
    }
    auto* match = std::get_if<Match>(&found);
    if (match == nullptr) {
        co_return make_error(
            ErrorKind::NotFound,
            fmt::format("no such path: {} (contract/openapi.yaml lists all; they begin "
                        "with /v1 and do not end with a slash)",
                        call.request.path()));
    }
    call.parameters = std::move(match->parameters);
    const Result<void> known = authenticate(call, match->route->key);
    if (!known) co_return known.error();
    co_return co_await match->route->handler(call);
}

Task<Result<Answer>> RestFace::dispatch_to_port(Call& call, PortAddress address) const {
    const Result<void> known = authenticate(call, Key::Wanted);
    if (!known) co_return known.error();
    co_return co_await pass_to_port(call, std::move(address), PortRoute::Host);
}

Result<void> RestFace::authenticate(Call& call, Key key) const {
    if (key == Key::NotNeeded) return {};
    const auto signature = http::query_value(call.request.query(), "signature");
    if (key == Key::OrSignature && signature) return check_signature(call, *signature);
    const http::Headers& headers = call.request.headers();
    const std::string_view text = key == Key::Wanted ? port_key_in(headers) : key_in(headers);
    if (text.empty() && key == Key::Wanted) return {};
    if (text.empty()) {
        return make_error(ErrorKind::Unauthenticated,
                          "a key is needed: send `Authorization: Bearer e2b_…` (or `X-API-Key`)");
    }
    auto caller = engine_->keys().check(text);
    if (!caller) return std::move(caller).error();
    call.caller = std::move(*caller);
    return {};
}

Result<void> RestFace::check_signature(Call& call, const std::string& signature) const {
    const auto path = http::query_value(call.request.query(), "path").value_or("");
    const auto access =
        call.request.method() == "PUT" ? engine::FileAccess::Write : engine::FileAccess::Read;
    auto grant =
        engine_->url_signer().check(signature, call.parameters[0], path, access, unix_ms());
    if (!grant) return std::move(grant).error();
    if (!engine_->keys().is_valid(grant->caller)) {
        return make_error(ErrorKind::PermissionDenied,
                          "the key that signed this URL was revoked: ask for a new one");
    }
    call.caller = grant->caller;
    call.grant = std::move(*grant);
    return {};
}

Task<int> RestFace::answer(Call& call, Result<Answer> result) const {
    if (result && result->sent == Answer::Sent::Yes) co_return result->status;
    if (call.response
            .started()) {  // a stream that cannot be finished: the client must see the break
        call.response.abort();
        co_return 500;
    }
    http::Headers headers = headers_for(call);
    if (!result) add_error_headers(headers, result.error());
    if (result) headers.merge(result->headers);
    const int status = result ? result->status : status_of(result.error());
    std::string body =
        result ? std::move(result->body) : error_body(result.error(), call.request_id);
    if (body.empty()) headers.erase("Content-Type");
    (void)co_await call.response.send(status, std::move(headers),
                                      std::move(body));  // or nobody is there
    co_return status;
}

}  // namespace cloister::rest
