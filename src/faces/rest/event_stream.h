// The events of a run or of a sandbox's life, live, until `ended`: as server-sent events, as lines
// of JSON, or as messages of a WebSocket.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/run.h"
#include "faces/rest/call.h"
#include "http/server.h"

namespace cloister::rest {

enum class EventForm { Sse, Lines };
// What `Accept` asks for, if it asks for events.
std::optional<EventForm> event_form(const http::Request& request);

// "id: 7\nevent: stdout\ndata: {…}\n\n"
void append_sse(std::string& out, const engine::Event& event);
// {"id":7,"event":"stdout","data":{…}}, without a newline
void append_json(std::string& out, const engine::Event& event);

// Sends the run's events behind number `after`. Each limits::kHeartbeatMs without one, something
// shows that the connection lives. Returns when the last event is sent, or the reader is gone.
Task<void> stream_events(http::Response& response, std::shared_ptr<engine::Run> run, uint64_t after,
                         EventForm form);
// The same for the events of a sandbox's life.
Task<void> stream_log(http::Response& response, std::shared_ptr<engine::RunLog> log, uint64_t after,
                      EventForm form);
// An error, and nothing is sent, if the request is not a good handshake. The client sends nothing
// but Pong and Close.
Task<Result<void>> stream_to_websocket(const http::Request& request, http::Response& response,
                                       std::shared_ptr<engine::Run> run, uint64_t after);

}  // namespace cloister::rest
