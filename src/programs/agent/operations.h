// The operations of the agent protocol, decoded and checked.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "programs/agent/buffers.h"
#include "programs/agent/file_request.h"
#include "programs/agent/outcome.h"
#include "programs/agent/terminal.h"
#include "programs/agent/user_process.h"
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

struct StartProcess {
    std::string process;
    Identity identity = Identity::User;
    std::vector<std::string> argv;  // the first without a slash is looked for in PATH
    StringMap env;
    std::string cwd;  // absolute
    StdinMode stdin_mode = StdinMode::None;
    std::string stdin_path;  // absolute; not empty: stdin is that file
    int64_t timeout_ms = 0;  // 0: none
    std::optional<TerminalSize> terminal;
    std::string tag;
};

struct AttachProcess {
    std::string process;
    uint64_t after = 0;  // bytes of output that the client has
    // Yes: instead, what is needed to show the screen of its terminal again.
    enum class Screen { No, Yes } screen = Screen::No;
    enum class Buffer { Wide, Small } buffer = Buffer::Wide;
};

struct WriteStdin {
    std::string process;
    enum class End { KeepOpen, Close } end = End::KeepOpen;
};

struct SignalProcess {
    std::string process;
    int number = 0;
};

struct ResizeProcess {
    std::string process;
    TerminalSize size;
};

struct ListProcesses {};

struct GetProcess {
    std::string process;
};

struct RemoveProcess {
    std::string process;
};

struct ConnectPort {
    uint16_t port = 0;
    // Only if the port is published.
    enum class Asks { Anyone, Authorised } asks = Asks::Anyone;
};

struct PublishPort {
    uint16_t port = 0;
    enum class State { Published, Closed } state = State::Published;
};

struct ListPorts {};

using Operation =
    std::variant<Hello, PrepareContext, DeleteContext, RunCode, InterruptRun, AttachRun, ForgetRun,
                 ReadOutput, GetState, FileOperation, StartProcess, AttachProcess, WriteStdin,
                 SignalProcess, ResizeProcess, ListProcesses, GetProcess, RemoveProcess,
                 ConnectPort, PublishPort, ListPorts>;

// Decodes a connection's first frame (its kind byte, then its payload). Relative paths begin at
// `home`. Errors name the field.
Result<Operation> decode_operation(const HeldMessage& frame, const std::string& home);

}  // namespace cloister::agent
