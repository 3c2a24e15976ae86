// Bodies of requests and of streamed answers.
#pragma once

#include <string>

#include "engine/files.h"
#include "faces/rest/call.h"

namespace cloister::rest {

// The body of a JSON request, within its limit.
Task<Result<std::string>> json_body(Call& call);
// A streamed body as a source of pieces; TooLarge beyond `max_bytes`. Valid while `call` is.
engine::ByteSource body_source(Call& call, uint64_t max_bytes);
// Sends `file` with that status. One that breaks off closes the connection, so that the client sees
// it.
Task<Answer> send_file(Call& call, engine::OpenFile file, int status = 200,
                       http::Headers more = {});

// The same for what has no known length: chunked until `next` answers an empty piece.
Task<Answer> send_stream(Call& call, engine::ByteSource next, http::Headers headers);

}  // namespace cloister::rest
