#include "faces/rest/decode.h"

#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "base/time.h"
#include "egress/policy_json.h"
#include "engine/tier.h"
#include "wire/base64.h"
#include "wire/json.h"

namespace cloister::rest {
namespace {

constexpr size_t kWordMax = 64;
constexpr size_t kKeyMax = 255;  // of an idempotency key

int64_t in_mb(uint64_t bytes) {
    return static_cast<int64_t>(bytes / limits::kMiB);
}

// A tier that is asked for and absent is refused, never replaced by a weaker one.
void read_tier(FieldReader& in) {
    const auto tier = in.optional_string("tier", kWordMax);
    if (!tier || *tier == engine::kTier) return;
    const bool known = *tier == "gvisor" || *tier == "microvm";
    in.fail("tier", known
                        ? fmt::format("this service has no tier `{}`, only `namespace`: it is not "
                                      "built in (GET /v1/capabilities says more)",
                                      *tier)
                        : "`tier` must be `namespace`, `gvisor` or `microvm`");
}

std::optional<engine::AtEnd> read_at_end(FieldReader& in, std::string_view name) {
    const auto word = in.optional_string(name, kWordMax);
    if (!word) return std::nullopt;
    const auto known = engine::at_end_from(*word);
    if (!known) in.fail(name, fmt::format("`{}` must be `pause` or `kill`", name));
    return known;
}

// A number, or null, which says something of its own.
std::optional<std::optional<int64_t>> read_nullable(FieldReader& in, const json::object& object,
                                                    std::string_view name, int64_t low,
                                                    int64_t high) {
    const auto number = in.optional_int(name, low, high);
    if (number) return number;
    const json::value* value = object.if_contains(name);
    if (value == nullptr || !value->is_null()) return std::nullopt;
    return std::optional<int64_t>();
}

ops::LifeChange read_life(FieldReader& in, const json::object& object) {
    constexpr int64_t kLongest = limits::kSandboxIdleMaxMs / 1000;
    ops::LifeChange change;
    change.idle_seconds = read_nullable(in, object, "idle_timeout_seconds",
                                        limits::kSandboxIdleMinMs / 1000, kLongest);
    change.on_idle = read_at_end(in, "on_idle");
    change.deadline_seconds = read_nullable(in, object, "deadline_seconds", 0, kLongest);
    change.on_deadline = read_at_end(in, "on_deadline");
    return change;
}

Result<std::optional<egress::PolicySpec>> read_network(FieldReader& in, const std::string& prefix) {
    const json::object* object = in.optional_object("network");
    if (object == nullptr) return std::optional<egress::PolicySpec>();
    return std::optional(TRY(egress::policy_from(*object, prefix + "network.")));
}

Result<engine::SandboxSpec> read_sandbox(const json::object& object, std::string prefix) {
    FieldReader in(object, prefix);
    engine::SandboxSpec spec;
    read_tier(in);
    spec.template_name = in.optional_string("template", kWordMax).value_or(spec.template_name);
    spec.cpu =
        static_cast<int>(in.optional_int("cpu", 1, limits::kSandboxCpuMax).value_or(spec.cpu));
    const auto memory = in.optional_int("memory_mb", in_mb(limits::kSandboxMemoryMin),
                                        in_mb(limits::kSandboxMemoryMax));
    if (memory) spec.memory_mb = static_cast<uint64_t>(*memory);
    const auto disk =
        in.optional_int("disk_mb", static_cast<int64_t>(limits::kSandboxDiskMin / limits::kMiB),
                        in_mb(limits::kPoolDefaultMax));
    if (disk) spec.disk_mb = static_cast<uint64_t>(*disk);
    spec.env = in.optional_string_map("env", limits::kEnvEntriesMax, limits::kEnvBytesMax)
                   .value_or(StringMap());
    spec.metadata =
        in.optional_string_map("metadata", limits::kMetadataEntriesMax, limits::kMetadataBytesMax)
            .value_or(StringMap());
    ops::apply(read_life(in, object), unix_ms(), spec.lifespan);
    spec.network = TRY(read_network(in, prefix)).value_or(egress::PolicySpec{});
    TRY_OK(in.finish());
    return spec;
}

Result<engine::InlineFile> read_file(const json::value& value, std::string place) {
    if (!value.is_object()) {
        return invalid_field(
            place, fmt::format("`{}` must be an object with `path` and `content`", place));
    }
    FieldReader in(value.as_object(), place + ".");
    engine::InlineFile file{.path = in.required_string("path", limits::kPathMax)};
    auto text = in.optional_string("content", limits::kJsonBodyMax);
    const auto encoded = in.optional_string("content_base64", limits::kJsonBodyMax);
    TRY_OK(in.finish());
    if (text.has_value() == encoded.has_value()) {
        return invalid_field(
            place,
            fmt::format("`{}` must have exactly one of `content` and `content_base64`", place));
    }
    auto bytes = text ? std::move(text) : base64_decode(*encoded);
    if (!bytes) {
        return invalid_field(place + ".content_base64",
                             fmt::format("`{}.content_base64` must be base64 with padding", place));
    }
    file.bytes = std::move(*bytes);
    return file;
}

Result<std::vector<engine::InlineFile>> read_files(FieldReader& in) {
    std::vector<engine::InlineFile> out;
    const json::array* list = in.optional_array("files", limits::kInlineFilesMax);
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
        out.push_back(TRY(read_file((*list)[i], fmt::format("files[{}]", i))));
    }
    return out;
}

void read_stdin(FieldReader& in, engine::RunSpec& spec) {
    auto text = in.optional_string("stdin", limits::kJsonBodyMax);
    const bool open = in.optional_bool("stdin_open").value_or(false);
    if (text && open) in.fail("stdin", "give either `stdin` or `stdin_open`, not both");
    if (text) {
        spec.stdin_mode = engine::StdinMode::Text;
        spec.stdin_text = std::move(*text);
    } else if (open) {
        spec.stdin_mode = engine::StdinMode::Calls;
    }
}

void read_limits(FieldReader& in, engine::RunSpec& spec) {
    spec.timeout_ms =
        in.optional_int("timeout_ms", limits::kRunTimeoutMinMs, limits::kRunTimeoutMaxMs)
            .value_or(spec.timeout_ms);
    spec.cpu_time_ms =
        in.optional_int("cpu_time_ms", limits::kRunCpuTimeMinMs, limits::kRunCpuTimeMaxMs)
            .value_or(spec.cpu_time_ms);
    const auto memory =
        in.optional_int("memory_max_bytes", static_cast<int64_t>(limits::kRunMemoryMin),
                        static_cast<int64_t>(limits::kSandboxMemoryMax));
    if (memory) spec.narrowed.memory_max = static_cast<uint64_t>(*memory);
    const auto pids = in.optional_int("pids", limits::kRunPidsMin, limits::kSandboxPidsDefault);
    if (pids) spec.narrowed.pids_max = static_cast<uint32_t>(*pids);
    const auto output =
        in.optional_int("output_max_bytes", static_cast<int64_t>(limits::kRunOutputMin),
                        static_cast<int64_t>(limits::kOutputMaxDefault));
    if (output) spec.output_max = static_cast<uint64_t>(*output);
    const auto inlined =
        in.optional_int("inline_bytes", static_cast<int64_t>(limits::kInlineOutputLeast),
                        static_cast<int64_t>(limits::kInlineOutputLargest));
    if (inlined) spec.inline_max = static_cast<size_t>(*inlined);
    const std::string beyond = in.optional_string("on_output_limit", kWordMax).value_or("end");
    if (beyond == "discard") spec.on_output_limit = engine::OnOutputLimit::Discard;
    if (beyond != "end" && beyond != "discard") {
        in.fail("on_output_limit", "`on_output_limit` must be `end` or `discard`");
    }
}

engine::RunSpec read_spec(FieldReader& in) {
    engine::RunSpec spec;
    spec.code = in.required_string("code", limits::kCodeMax);
    spec.language = in.optional_string("language", kWordMax).value_or("");
    spec.metrics = in.optional_bool("metrics").value_or(false);
    spec.filename = in.optional_string("filename", limits::kFilenameMax);
    spec.argv = in.optional_strings("argv", limits::kArgvMax, limits::kEnvBytesMax)
                    .value_or(std::vector<std::string>());
    spec.env = in.optional_string_map("env", limits::kEnvEntriesMax, limits::kEnvBytesMax)
                   .value_or(StringMap());
    spec.cwd = in.optional_string("cwd", limits::kPathMax);
    read_limits(in, spec);
    read_stdin(in, spec);
    return spec;
}

OnDisconnect read_on_disconnect(FieldReader& in) {
    const std::string word = in.optional_string("on_disconnect", kWordMax).value_or("continue");
    if (word == "interrupt") return OnDisconnect::Interrupt;
    if (word != "continue")
        in.fail("on_disconnect", "`on_disconnect` must be `continue` or `interrupt`");
    return OnDisconnect::Continue;
}

Result<RunBody> read_run(FieldReader& in) {
    RunBody body{.spec = read_spec(in)};
    body.spec.files = TRY(read_files(in));
    body.spec.network = TRY(read_network(in, ""));
    body.wait = in.optional_bool("wait").value_or(true) ? Wait::Yes : Wait::No;
    body.on_disconnect = read_on_disconnect(in);
    return body;
}

Result<json::object> parse_optional(std::string_view body) {
    if (body.empty()) return json::object();
    return parse_object(body);
}

}  // namespace

Result<engine::SandboxSpec> decode_sandbox(std::string_view body) {
    const json::object object = TRY(parse_optional(body));
    return read_sandbox(object, "");
}

Result<ops::LifeChange> decode_life_change(std::string_view body) {
    const json::object object = TRY(parse_optional(body));
    FieldReader in(object, "");
    const ops::LifeChange change = read_life(in, object);
    TRY_OK(in.finish());
    return change;
}

Result<engine::WhenBusy> decode_pause(std::string_view body) {
    const json::object object = TRY(parse_optional(body));
    FieldReader in(object, "");
    const std::string word = in.optional_string("when_busy", kWordMax).value_or("refuse");
    if (word != "refuse" && word != "wait")
        in.fail("when_busy", "`when_busy` must be `refuse` or `wait`");
    TRY_OK(in.finish());
    return word == "wait" ? engine::WhenBusy::Wait : engine::WhenBusy::Refuse;
}

Result<engine::ContextSpec> decode_context(std::string_view body) {
    const json::object object = TRY(parse_optional(body));
    FieldReader in(object, "");
    engine::ContextSpec spec;
    spec.language = in.optional_string("language", kWordMax).value_or(spec.language);
    spec.cwd = in.optional_string("cwd", limits::kPathMax).value_or(spec.cwd);
    spec.env = in.optional_string_map("env", limits::kEnvEntriesMax, limits::kEnvBytesMax)
                   .value_or(StringMap());
    TRY_OK(in.finish());
    return spec;
}

Result<egress::PolicySpec> decode_network(std::string_view body) {
    const json::object object = TRY(parse_object(body));
    return egress::policy_from(object, "");
}

Result<RunBody> decode_run(std::string_view body) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    RunBody out = TRY(read_run(in));
    out.spec.context_id = in.optional_string("context_id", kWordMax).value_or("");
    out.spec.idempotency_key = in.optional_string("idempotency_key", kKeyMax).value_or("");
    TRY_OK(in.finish());
    return out;
}

Result<RunBody> decode_one_call_run(std::string_view body) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    RunBody out = TRY(read_run(in));
    const json::object* sandbox = in.optional_object("sandbox");
    TRY_OK(in.finish());
    if (sandbox != nullptr) out.sandbox = TRY(read_sandbox(*sandbox, "sandbox."));
    return out;
}

Result<std::string> decode_key_name(std::string_view body) {
    const json::object object = TRY(parse_optional(body));
    FieldReader in(object, "");
    std::string name = in.optional_string("name", limits::kKeyNameMax).value_or("");
    TRY_OK(in.finish());
    return name;
}

namespace {

// Either words, or text for a shell.
void read_program(FieldReader& in, engine::ProcessSpec& spec) {
    auto words = in.optional_strings("argv", limits::kArgvMax, limits::kEnvBytesMax);
    auto command = in.optional_string("command", limits::kEnvBytesMax);
    if (words.has_value() == command.has_value()) {
        return in.fail("argv", "give either `argv` (words) or `command` (text for a shell)");
    }
    if (command) {
        spec.argv = {"/bin/bash", "-c", std::move(*command)};
        return;
    }
    spec.argv = std::move(*words);
    if (spec.argv.empty() || spec.argv[0].empty()) in.fail("argv", "`argv` must name a program");
}

void read_process_stdin(FieldReader& in, engine::ProcessSpec& spec) {
    auto text = in.optional_string("stdin", limits::kStdinCallMax);
    spec.stdin_path = in.optional_string("stdin_path", limits::kPathMax);
    const bool open = in.optional_bool("stdin_open").value_or(false);
    if (int{text.has_value()} + int{spec.stdin_path.has_value()} + int{open} > 1) {
        return in.fail("stdin", "give only one of `stdin`, `stdin_path` and `stdin_open`");
    }
    if (open) spec.stdin_mode = engine::StdinMode::Calls;
    if (!text) return;
    spec.stdin_mode = engine::StdinMode::Text;
    spec.stdin_text = std::move(*text);
}

void read_terminal(FieldReader& in, engine::ProcessSpec& spec) {
    const json::object* pty = in.optional_object("pty");
    if (pty == nullptr) return;
    const auto size = decode_size(*pty, "pty.");
    if (!size) return in.fail("pty", size.error().message);
    if (spec.stdin_mode != engine::StdinMode::None || spec.stdin_path) {
        return in.fail("pty",
                       "a terminal is its process's stdin: leave `stdin`, `stdin_path` and "
                       "`stdin_open` out");
    }
    spec.terminal = *size;
}

OnDisconnect read_kill_on_disconnect(FieldReader& in) {
    const std::string word = in.optional_string("on_disconnect", kWordMax).value_or("continue");
    if (word == "kill") return OnDisconnect::Interrupt;
    if (word != "continue")
        in.fail("on_disconnect", "`on_disconnect` must be `continue` or `kill`");
    return OnDisconnect::Continue;
}

}  // namespace

Result<ProcessBody> decode_process(std::string_view body) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    ProcessBody out;
    read_program(in, out.spec);
    out.spec.env = in.optional_string_map("env", limits::kEnvEntriesMax, limits::kEnvBytesMax)
                       .value_or(StringMap());
    out.spec.cwd = in.optional_string("cwd", limits::kPathMax);
    out.spec.user = in.optional_string("user", kWordMax).value_or("user");
    out.spec.tag = in.optional_string("tag", limits::kProcessTagMax).value_or("");
    out.spec.timeout_ms =
        in.optional_int("timeout_ms", limits::kRunTimeoutMinMs, limits::kRunTimeoutMaxMs)
            .value_or(0);
    read_process_stdin(in, out.spec);
    read_terminal(in, out.spec);
    out.wait = in.optional_bool("wait").value_or(false) ? Wait::Yes : Wait::No;
    out.on_disconnect = read_kill_on_disconnect(in);
    const auto inlined =
        in.optional_int("inline_bytes", static_cast<int64_t>(limits::kInlineOutputLeast),
                        static_cast<int64_t>(limits::kInlineOutputLargest));
    if (inlined) out.inline_max = static_cast<size_t>(*inlined);
    TRY_OK(in.finish());
    return out;
}

Result<std::string> decode_signal(std::string_view body) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    std::string name = in.required_string("signal", kWordMax);
    TRY_OK(in.finish());
    return name.starts_with("SIG") ? name.substr(3) : name;
}

Result<engine::TerminalSize> decode_size(const json::object& object, std::string prefix) {
    FieldReader in(object, std::move(prefix));
    engine::TerminalSize size;
    size.cols = in.optional_int("cols", 1, limits::kTerminalSizeMax).value_or(size.cols);
    size.rows = in.optional_int("rows", 1, limits::kTerminalSizeMax).value_or(size.rows);
    TRY_OK(in.finish());
    return size;
}

Result<engine::TerminalSize> decode_size(std::string_view body) {
    const json::object object = TRY(parse_object(body));
    return decode_size(object, "");
}

Result<uint16_t> decode_port(std::string_view body) {
    const json::object object = TRY(parse_object(body));
    FieldReader in(object, "");
    const auto port = in.optional_int("port", 1, 65535);
    if (!port && in.ok()) in.fail("port", "`port` is required: a number from 1 to 65535");
    TRY_OK(in.finish());
    return static_cast<uint16_t>(*port);
}

}  // namespace cloister::rest
