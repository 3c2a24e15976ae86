// Server-sent events: the events of a run, live, until `ended`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/run.h"
#include "http/server.h"

namespace cloister::rest {

// "id: 7\nevent: stdout\ndata: {…}\n\n"
void append_sse(std::string& out, const engine::Event& event);

// Sends the run's events behind number `after`. A comment every 15 s shows that the connection
// lives. Returns when the last event is sent, or the reader is gone.
Task<void> stream_events(http::Response& response, std::shared_ptr<engine::Run> run,
                         uint64_t after);

}  // namespace cloister::rest
