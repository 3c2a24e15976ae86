// The operations of the agent protocol, decoded and checked.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "programs/agent/buffers.h"
#include "programs/agent/file_request.h"
#include "programs/agent/outcome.h"
#include "wire/json.h"

namespace cloister::agent {

struct Hello {};

struct PrepareContext {
    std::string context;
    std::string language;
    std::string cwd;  // absolute
    StringMap env;
};

struct DeleteContext {
    std::string context;
};

enum class StdinMode { None, Stream };
// What follows when a run has written more than it may.
enum class OnOutputLimit { End, Discard };

struct RunCode {
    std::string run;
    std::string context;
    // A slice of the request with the JSON string, passed on to the driver as it stands.
    HeldMessage request;
    std::string_view code;
    std::optional<std::string> filename;
    std::optional<std::vector<std::string>> argv;
    StringMap env;
    std::string cwd;  // absolute; empty: the context's
    StdinMode stdin_mode = StdinMode::None;
    int64_t timeout_ms = 0;
    uint64_t output_max = 0;
    OnOutputLimit on_output_limit = OnOutputLimit::End;
    int64_t cpu_time_ms = 0;  // 0: no limit
    // What holds for the sandbox during this run, for the words of its end; 0: as it was born.
    uint64_t memory_max = 0;
    uint64_t pids_max = 0;
    bool artifacts = false;
    int64_t metrics_ms = 0;  // between events that say what is used; 0: none
    std::string forget;      // as ForgetRun, of an earlier run; empty: none
};

struct InterruptRun {
    std::string run;
    StopCause cause = StopCause::Interrupted;
};

struct AttachRun {
    std::string run;
};

enum class OutputStream { Stdout, Stderr, All };

struct ReadOutput {
    std::string run;
    OutputStream stream = OutputStream::All;
    uint64_t offset = 0;
    uint64_t length = UINT64_MAX;
};

struct ForgetRun {
    std::string run;
};

struct GetState {};

// An operation on files, and its text, from which the child that does it decodes it again.
struct FileOperation {
    FileRequest request;
    std::string text;
};

using Operation = std::variant<Hello, PrepareContext, DeleteContext, RunCode, InterruptRun,
                               AttachRun, ForgetRun, ReadOutput, GetState, FileOperation>;

// Decodes a connection's first frame (its kind byte, then its payload). Relative paths begin at
// `home`. Errors name the field.
Result<Operation> decode_operation(const HeldMessage& frame, const std::string& home);

}  // namespace cloister::agent
