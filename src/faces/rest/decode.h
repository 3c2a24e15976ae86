// JSON bodies of requests → inputs of operations. Unknown fields are refused by name.
#pragma once

#include <string_view>

#include "base/result.h"
#include "engine/pauses.h"
#include "engine/processes.h"
#include "engine/run.h"
#include "engine/sandbox.h"
#include "ops/update_sandbox.h"

namespace cloister::rest {

enum class OnDisconnect { Continue, Interrupt };
enum class Wait { No, Yes };

struct RunBody {
    engine::RunSpec spec;
    Wait wait = Wait::Yes;
    OnDisconnect on_disconnect = OnDisconnect::Continue;
    engine::SandboxSpec sandbox;  // of a one-call run
};

struct ProcessBody {
    engine::ProcessSpec spec;
    Wait wait = Wait::No;
    OnDisconnect on_disconnect = OnDisconnect::Continue;  // Interrupt: it is killed
    size_t inline_max = limits::kInlineOutputMax;         // of each stream, when it is waited for
};

Result<engine::SandboxSpec> decode_sandbox(std::string_view body);  // an empty body: all defaults
Result<ops::LifeChange> decode_life_change(std::string_view body);
Result<engine::WhenBusy> decode_pause(std::string_view body);       // the same
Result<engine::ContextSpec> decode_context(std::string_view body);  // the same
Result<egress::PolicySpec> decode_network(std::string_view body);
Result<RunBody> decode_run(std::string_view body);
Result<RunBody> decode_one_call_run(std::string_view body);
Result<std::string> decode_key_name(std::string_view body);
Result<ProcessBody> decode_process(std::string_view body);
Result<std::string> decode_signal(std::string_view body);
Result<engine::TerminalSize> decode_size(std::string_view body);
Result<engine::TerminalSize> decode_size(const json::object& object, std::string prefix);
Result<uint16_t> decode_port(std::string_view body);

}  // namespace cloister::rest
