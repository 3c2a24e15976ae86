#include "faces/rest/decode.h"

#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "egress/policy_json.h"
#include "engine/tier.h"
#include "wire/base64.h"
#include "wire/json.h"

namespace cloister::rest {
namespace {

constexpr size_t kWordMax = 64;

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
    spec.idle_timeout_seconds =
        in.optional_int("idle_timeout_seconds", limits::kSandboxIdleMinMs / 1000,
                        limits::kSandboxIdleMaxMs / 1000)
            .value_or(spec.idle_timeout_seconds);
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

}  // namespace cloister::rest
