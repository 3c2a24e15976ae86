// The table of routes: every operation of contract/openapi.yaml by its id, and nothing else.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "faces/rest/call.h"

namespace cloister::rest {

// Wanted: the handler may do without. OrSignature: a signed URL will do.
enum class Key { Needed, Wanted, NotNeeded, OrSignature };

struct Route {
    std::string_view operation;  // operationId of the contract
    std::string_view method;
    std::string_view
        pattern;  // "/v1/runs/{run_id}": a part in braces matches one part that is not empty,
                  // "{path}" all that follows, also nothing
    Key key;
    Handler handler;
};

std::span<const Route> routes();

struct Match {
    const Route* route;
    std::vector<std::string> parameters;
};
struct NoSuchPath {};
struct OtherMethods {
    std::string allow;  // "GET, DELETE"
};
// HEAD is GET.
std::variant<Match, NoSuchPath, OtherMethods> find_route(std::string_view method,
                                                         std::string_view path);

}  // namespace cloister::rest
