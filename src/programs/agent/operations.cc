#include "programs/agent/operations.h"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <utility>

#include "base/ids.h"
#include "base/limits.h"
#include "base/process_limits.h"
#include "programs/agent/json_slice.h"
#include "wire/frame.h"

namespace cloister::agent {
namespace {

// Of a request without its code.
constexpr size_t kSmallPartMax = limits::kMiB;

std::string id_field(FieldReader& in, std::string_view name) {
    std::string id = in.required_string(name, kIdLength);
    if (!is_id(id)) in.fail(name, fmt::format("`{}` is not an id", name));
    return id;
}

std::string checked_path(FieldReader& in, std::string_view name, std::string path,
                         const std::string& home) {
    if (path.empty() || path.find('\0') != std::string::npos) {
        in.fail(name, fmt::format("`{}` must be a path without a zero byte", name));
    }
    return path.starts_with('/') ? path : home + "/" + path;
}

StringMap env_field(FieldReader& in) {
    StringMap env = in.optional_string_map("env", limits::kEnvEntriesMax, limits::kEnvBytesMax)
                        .value_or(StringMap{});
    for (const auto& [name, value] : env) {
        const std::string all = name + value;
        if (name.empty() || name.find('=') != std::string::npos ||
            all.find('\0') != std::string::npos) {
            in.fail("env", "`env`: a name must not be empty nor hold `=`, and nothing a zero byte");
        }
    }
    return env;
}

std::string optional_path(FieldReader& in, std::string_view name, const std::string& home,
                          std::string otherwise) {
    const auto path = in.optional_string(name, limits::kPathMax);
    return path ? checked_path(in, name, *path, home) : std::move(otherwise);
}

PrepareContext prepare_context(FieldReader& in, const std::string& home) {
    PrepareContext op;
    op.context = id_field(in, "context");
    op.language = in.required_string("language", limits::kLanguageMax);
    op.cwd = optional_path(in, "cwd", home, home);
    op.env = env_field(in);
    return op;
}

RunCode run_code(FieldReader& in, const std::string& home) {
    RunCode op;
    op.run = id_field(in, "run");
    op.context = id_field(in, "context");
    op.filename = in.optional_string("filename", limits::kPathMax);
    op.argv = in.optional_strings("argv", limits::kArgvMax, limits::kEnvBytesMax);
    op.env = env_field(in);
    op.cwd = optional_path(in, "cwd", home, {});
    const std::string stdin_word = in.optional_string("stdin", 16).value_or("none");
    if (stdin_word != "none" && stdin_word != "stream") {
        in.fail("stdin", "`stdin` must be `none` or `stream`");
    }
    op.stdin_mode = stdin_word == "stream" ? StdinMode::Stream : StdinMode::None;
    op.timeout_ms =
        in.optional_int("timeout_ms", limits::kRunTimeoutMinMs, limits::kRunTimeoutMaxMs)
            .value_or(limits::kRunTimeoutDefaultMs);
    op.output_max = static_cast<uint64_t>(
        in.optional_int("output_max", 1, INT64_MAX).value_or(limits::kOutputMaxDefault));
    const std::string beyond = in.optional_string("on_output_limit", 16).value_or("end");
    if (beyond != "end" && beyond != "discard") {
        in.fail("on_output_limit", "`on_output_limit` must be `end` or `discard`");
    }
    op.on_output_limit = beyond == "discard" ? OnOutputLimit::Discard : OnOutputLimit::End;
    op.cpu_time_ms =
        in.optional_int("cpu_time_ms", limits::kRunCpuTimeMinMs, limits::kRunCpuTimeMaxMs)
            .value_or(0);
    op.memory_max = static_cast<uint64_t>(in.optional_int("memory_max", 1, INT64_MAX).value_or(0));
    op.pids_max = static_cast<uint64_t>(in.optional_int("pids_max", 1, INT64_MAX).value_or(0));
    op.metrics_ms = in.optional_int("metrics_ms", limits::kMetricsEveryMs, limits::kRunTimeoutMaxMs)
                        .value_or(0);
    op.artifacts = in.optional_bool("artifacts").value_or(false);
    if (in.optional_value("forget") != nullptr) op.forget = id_field(in, "forget");
    return op;
}

InterruptRun interrupt_run(FieldReader& in) {
    InterruptRun op;
    op.run = id_field(in, "run");
    const std::string reason = in.optional_string("reason", 32).value_or("interrupted");
    if (reason != "interrupted" && reason != "cancelled") {
        in.fail("reason", "`reason` must be `interrupted` or `cancelled`");
    }
    op.cause = reason == "cancelled" ? StopCause::Cancelled : StopCause::Interrupted;
    return op;
}

ReadOutput read_output(FieldReader& in) {
    ReadOutput op;
    op.run = id_field(in, "run");
    const std::string stream = in.optional_string("stream", 16).value_or("all");
    if (stream == "stdout") op.stream = OutputStream::Stdout;
    if (stream == "stderr") op.stream = OutputStream::Stderr;
    if (op.stream == OutputStream::All && stream != "all") {
        in.fail("stream", "`stream` must be `stdout`, `stderr` or `all`");
    }
    op.offset = static_cast<uint64_t>(in.optional_int("offset", 0, INT64_MAX).value_or(0));
    op.length = static_cast<uint64_t>(in.optional_int("length", 0, INT64_MAX).value_or(INT64_MAX));
    return op;
}

// The words of `one` or `other`; whether it is the second.
bool is_second(FieldReader& in, std::string_view name, std::string_view one,
               std::string_view other) {
    const std::string word = in.optional_string(name, 16).value_or(std::string(one));
    if (word != one && word != other) {
        in.fail(name, fmt::format("`{}` must be `{}` or `{}`", name, one, other));
    }
    return word == other;
}

TerminalSize terminal_size(FieldReader& in) {
    const auto side = [&in](std::string_view name, uint16_t otherwise) {
        return static_cast<uint16_t>(
            in.optional_int(name, 1, limits::kTerminalSizeMax).value_or(otherwise));
    };
    return {.cols = side("cols", 80), .rows = side("rows", 24)};
}

StartProcess start_process(FieldReader& in, const std::string& home) {
    StartProcess op;
    op.process = id_field(in, "process");
    op.argv = in.optional_strings("argv", limits::kArgvMax, limits::kEnvBytesMax)
                  .value_or(std::vector<std::string>());
    if (op.argv.empty() || op.argv[0].empty()) in.fail("argv", "`argv` must name a program");
    for (const std::string& word : op.argv) {
        if (word.find('\0') != std::string::npos) in.fail("argv", "`argv` must have no zero byte");
    }
    const bool root = is_second(in, "user", "user", "root");
    op.identity = root ? Identity::Root : Identity::User;
    op.env = env_field(in);
    op.cwd = optional_path(in, "cwd", root ? "/root" : home, root ? "/root" : home);
    op.stdin_mode = is_second(in, "stdin", "none", "stream") ? StdinMode::Stream : StdinMode::None;
    op.stdin_path = optional_path(in, "stdin_path", op.cwd, {});
    op.timeout_ms = in.optional_int("timeout_ms", 0, limits::kRunTimeoutMaxMs).value_or(0);
    op.tag = in.optional_string("tag", limits::kProcessTagMax).value_or("");
    if (in.optional_bool("pty").value_or(false)) op.terminal = terminal_size(in);
    return op;
}

AttachProcess attach_process(FieldReader& in) {
    AttachProcess op{.process = id_field(in, "process")};
    op.after = static_cast<uint64_t>(in.optional_int("after", 0, INT64_MAX).value_or(0));
    if (in.optional_bool("screen").value_or(false)) op.screen = AttachProcess::Screen::Yes;
    return op;
}

WriteStdin write_stdin(FieldReader& in) {
    WriteStdin op{.process = id_field(in, "process")};
    if (in.optional_bool("close").value_or(false)) op.end = WriteStdin::End::Close;
    return op;
}

constexpr auto kSignals = std::to_array<std::pair<std::string_view, int>>({
    {"HUP", SIGHUP},
    {"INT", SIGINT},
    {"QUIT", SIGQUIT},
    {"KILL", SIGKILL},
    {"USR1", SIGUSR1},
    {"USR2", SIGUSR2},
    {"TERM", SIGTERM},
    {"CONT", SIGCONT},
    {"STOP", SIGSTOP},
    {"TSTP", SIGTSTP},
    {"WINCH", SIGWINCH},
});

SignalProcess signal_process(FieldReader& in) {
    SignalProcess op{.process = id_field(in, "process")};
    const std::string name = in.required_string("signal", 16);
    for (const auto& [word, number] : kSignals) {
        if (word == name) op.number = number;
    }
    if (op.number == 0) {
        in.fail("signal",
                "`signal` must be HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP, TSTP "
                "or WINCH");
    }
    return op;
}

ResizeProcess resize_process(FieldReader& in) {
    ResizeProcess op{.process = id_field(in, "process")};
    op.size = terminal_size(in);
    return op;
}

uint16_t port_field(FieldReader& in) {
    const auto port = in.optional_int("port", 1, 65535);
    if (!port && in.ok()) in.fail("port", "`port` must be a number from 1 to 65535");
    return static_cast<uint16_t>(port.value_or(0));
}

ConnectPort connect_port(FieldReader& in) {
    ConnectPort op{.port = port_field(in)};
    if (in.optional_bool("authorised").value_or(false)) op.asks = ConnectPort::Asks::Authorised;
    return op;
}

PublishPort publish_port(FieldReader& in) {
    PublishPort op{.port = port_field(in)};
    if (!in.optional_bool("published").value_or(true)) op.state = PublishPort::State::Closed;
    return op;
}

std::optional<Operation> process_operation(const std::string& op, FieldReader& in,
                                           const std::string& home) {
    if (op == "process.start") return Operation(start_process(in, home));
    if (op == "process.attach") return Operation(attach_process(in));
    if (op == "process.stdin") return Operation(write_stdin(in));
    if (op == "process.signal") return Operation(signal_process(in));
    if (op == "process.resize") return Operation(resize_process(in));
    if (op == "process.list") return Operation(ListProcesses{});
    if (op == "process.get") return Operation(GetProcess{id_field(in, "process")});
    if (op == "process.remove") return Operation(RemoveProcess{id_field(in, "process")});
    if (op == "port.connect") return Operation(connect_port(in));
    if (op == "port.publish") return Operation(publish_port(in));
    if (op == "port.list") return Operation(ListPorts{});
    return std::nullopt;
}

Result<Operation> by_name(FieldReader& in, const std::string& home) {
    const std::string op = in.required_string("op", 32);
    if (op == "hello") return Operation(Hello{});
    if (op == "context.prepare") return Operation(prepare_context(in, home));
    if (op == "context.delete") return Operation(DeleteContext{id_field(in, "context")});
    if (op == "run") return Operation(run_code(in, home));
    if (op == "run.interrupt") return Operation(interrupt_run(in));
    if (op == "run.attach") return Operation(AttachRun{id_field(in, "run")});
    if (op == "run.forget") return Operation(ForgetRun{id_field(in, "run")});
    if (op == "run.output") return Operation(read_output(in));
    if (op == "state") return Operation(GetState{});
    if (op.starts_with("file.")) return Operation(FileOperation{file_request(in, op, home), {}});
    if (auto found = process_operation(op, in, home)) return std::move(*found);
    return invalid_field("op", fmt::format("there is no operation `{}`", op));
}

// The same object without the member `code`, which may be megabytes.
std::string without_code(const std::vector<JsonMember>& members) {
    std::string text = "{";
    for (const JsonMember& member : members) {
        if (member.key == "code") continue;
        if (text.size() > 1) text += ',';
        text += fmt::format("\"{}\":{}", member.key, member.value);
    }
    return text + "}";
}

}  // namespace

Result<Operation> decode_operation(const HeldMessage& frame, const std::string& home) {
    if (frame->bytes[0] != static_cast<char>(FrameKind::Json)) {
        return make_error(ErrorKind::InvalidArgument, "the first frame must be json, with an `op`");
    }
    const auto members = TRY(split_object(std::string_view(frame->bytes).substr(1)));
    const std::string_view code = find_member(members, "code");
    if (frame->bytes.size() - code.size() > kSmallPartMax) {
        return make_error(ErrorKind::TooLarge, "a request without its code is at most 1 MiB");
    }
    const json::object object = TRY(parse_object(without_code(members)));
    FieldReader in(object, "");
    Operation operation = TRY(by_name(in, home));
    auto* run = std::get_if<RunCode>(&operation);
    if (run == nullptr && !code.empty()) in.fail("code", "`code` belongs to `run` only");
    if (run != nullptr && !code.starts_with('"')) in.fail("code", "`code` must be a string");
    TRY_OK(in.finish());
    if (auto* file = std::get_if<FileOperation>(&operation)) {
        file->text = without_code(members);
        if (file->text.size() > kFileRequestMax) {
            return make_error(ErrorKind::TooLarge, "a request about files is at most 64 KiB");
        }
    }
    if (run != nullptr) {
        run->request = frame;
        run->code = code;
    }
    return operation;
}

}  // namespace cloister::agent
