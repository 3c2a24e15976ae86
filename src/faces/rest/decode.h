// JSON bodies of requests → inputs of operations. Unknown fields are refused by name.
#pragma once

#include <string_view>

#include "base/result.h"
#include "engine/run.h"
#include "engine/sandbox.h"

namespace cloister::rest {

enum class OnDisconnect { Continue, Interrupt };
enum class Wait { No, Yes };

struct RunBody {
    engine::RunSpec spec;
    Wait wait = Wait::Yes;
    OnDisconnect on_disconnect = OnDisconnect::Continue;
    engine::SandboxSpec sandbox;  // of a one-call run
};

Result<engine::SandboxSpec> decode_sandbox(std::string_view body);  // an empty body: all defaults
Result<engine::ContextSpec> decode_context(std::string_view body);  // the same
Result<egress::PolicySpec> decode_network(std::string_view body);
Result<RunBody> decode_run(std::string_view body);
Result<RunBody> decode_one_call_run(std::string_view body);
Result<std::string> decode_key_name(std::string_view body);

}  // namespace cloister::rest
