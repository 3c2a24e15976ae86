// One request on its way through the face, and what a handler answers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "http/server.h"
#include "wire/json.h"

namespace cloister::rest {

struct Call {
    http::Request& request;
    http::Response& response;
    std::shared_ptr<engine::Engine> engine;
    engine::Principal caller;             // its project is empty without a key
    std::vector<std::string> parameters;  // of the path, in order
    std::string request_id;
    std::string domain;  // of which `PORT-ID.DOMAIN` is a name for each port; empty: none
    std::optional<engine::Grant> grant;  // of a signed URL, in place of a key
};

// A whole JSON answer, or the note that the handler has streamed one already.
struct Answer {
    int status = 200;
    std::string body;
    enum class Sent { No, Yes };
    Sent sent = Sent::No;
    http::Headers headers;  // beside those that every answer has

    static Answer json(int status, const json::object& body) {
        return {.status = status, .body = json::serialize(body)};
    }
    static Answer nothing() { return {.status = 204, .body = {}}; }
    static Answer streamed(int status) { return {.status = status, .body = {}, .sent = Sent::Yes}; }
};

using Handler = Task<Result<Answer>> (*)(Call&);

}  // namespace cloister::rest
