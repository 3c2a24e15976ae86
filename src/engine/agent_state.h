// What lives in a sandbox, as its agent tells it to a new server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "loop/loop.h"
#include "wire/json.h"

namespace cloister::engine {

struct AgentContext {
    std::string id, language;
    bool ready = false;      // its interpreter waits for a run, or executes one
    std::string started_as;  // how the interpreter came to life
};

struct AgentState {
    std::vector<AgentContext> contexts;
    // Runs that go on, and ended ones whose end nobody has taken.
    std::vector<std::string> runs;
    std::vector<uint16_t> published;  // ports
    // Processes of clients that run, and CPU time of the sandbox since it was born.
    int64_t processes = 0, cpu_ms = 0;
    bool knows(std::string_view run) const;
};

// Asks the agent. Errors: as for AgentConnection, and Unavailable if it does not answer in time.
Task<Result<AgentState>> ask_agent_state(std::string socket);
// Entries that make no sense are left out, and so is what is over the limits.
AgentState decode_agent_state(const json::object& answer);

}  // namespace cloister::engine
