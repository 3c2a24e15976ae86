// What a process writes, live, until its end: as server-sent events, as lines of JSON, as messages
// of a WebSocket; and a WebSocket as its terminal, or its pipes, with both directions.
#pragma once

#include <memory>
#include <string>

#include "engine/processes.h"
#include "faces/rest/call.h"
#include "faces/rest/event_stream.h"
#include "ops/get_process.h"

namespace cloister::rest {

// Sends what the stream has, with a sign of life in silence. Returns after the end, or when the
// reader is gone.
Task<void> stream_process(http::Response& response, std::shared_ptr<engine::ProcessStream> stream,
                          EventForm form);
// The same events as messages. An error, and nothing is sent, if the handshake is no good one.
Task<Result<void>> stream_process_to_websocket(Call& call,
                                               std::shared_ptr<engine::ProcessStream> stream);
// Binary messages are bytes, both ways; text messages are JSON: events to the client, and from it
// `resize`, `signal` and `eof`.
Task<Result<void>> attach_websocket(Call& call, ops::ProcessName name,
                                    std::shared_ptr<engine::ProcessStream> stream);
// The process when it has ended, with what it wrote.
Task<Result<json::object>> wait_for_process(http::Response& response,
                                            std::shared_ptr<engine::ProcessStream> stream,
                                            size_t inline_max);

}  // namespace cloister::rest
