#include "engine/run_spec_json.h"

#include <array>

#include "egress/policy_json.h"
#include "wire/base64.h"

namespace cloister::engine {
namespace {

struct Word {
    StdinMode mode;
    std::string_view word;
};
constexpr std::array<Word, 3> kStdinWords = {
    {{StdinMode::None, "none"}, {StdinMode::Text, "text"}, {StdinMode::Calls, "calls"}}};

std::string_view word_of(StdinMode mode) {
    return kStdinWords[static_cast<size_t>(mode)].word;
}

StdinMode mode_of(std::string_view word) {
    for (const Word& known : kStdinWords) {
        if (known.word == word) return known.mode;
    }
    return StdinMode::None;
}

json::array files_json(const std::vector<InlineFile>& files) {
    json::array out;
    for (const InlineFile& file : files) {
        out.push_back({{"path", file.path}, {"bytes", base64_encode(file.bytes)}});
    }
    return out;
}

Result<std::string> bytes_of(FieldReader& in, std::string_view name) {
    auto bytes = base64_decode(in.optional_string(name, SIZE_MAX).value_or(""));
    if (!bytes) return invalid_field(std::string(name), "no base64 in a stored run");
    return std::move(*bytes);
}

Result<std::vector<InlineFile>> files_in(FieldReader& in) {
    std::vector<InlineFile> out;
    const json::array* files = in.optional_array("files", limits::kInlineFilesMax);
    if (files == nullptr) return out;
    for (const json::value& entry : *files) {
        if (!entry.is_object()) return invalid_field("files", "no file in a stored run");
        FieldReader file(entry.as_object(), "files.");
        out.push_back({.path = file.required_string("path", limits::kPathMax),
                       .bytes = TRY(bytes_of(file, "bytes"))});
        TRY_OK(file.finish());
    }
    return out;
}

}  // namespace

std::string spec_text(const RunSpec& spec) {
    json::object out{{"language", spec.language},
                     {"code", spec.code},
                     {"stdin", word_of(spec.stdin_mode)},
                     {"timeout_ms", spec.timeout_ms},
                     {"output_max", spec.output_max}};
    if (spec.on_output_limit == OnOutputLimit::Discard) out["discard"] = true;
    if (spec.inline_max != limits::kInlineOutputMax) out["inline_max"] = spec.inline_max;
    if (spec.cpu_time_ms > 0) out["cpu_time_ms"] = spec.cpu_time_ms;
    if (spec.narrowed.memory_max > 0) out["memory_max"] = spec.narrowed.memory_max;
    if (spec.narrowed.pids_max > 0) out["pids_max"] = spec.narrowed.pids_max;
    if (spec.network) out["network"] = egress::policy_json(*spec.network);
    if (spec.metrics) out["metrics"] = true;
    if (spec.filename) out["filename"] = *spec.filename;
    if (spec.cwd) out["cwd"] = *spec.cwd;
    if (!spec.argv.empty()) out["argv"] = json::array(spec.argv.begin(), spec.argv.end());
    if (!spec.stdin_text.empty()) out["stdin_text"] = base64_encode(spec.stdin_text);
    if (!spec.files.empty()) out["files"] = files_json(spec.files);
    json::object env;
    for (const auto& [name, value] : spec.env) env[name] = value;
    if (!env.empty()) out["env"] = std::move(env);
    return json::serialize(out);
}

Result<RunSpec> spec_from(std::string_view text) {
    const json::object object = TRY(parse_object(text));
    FieldReader in(object, "");
    RunSpec spec;
    spec.language = in.required_string("language", SIZE_MAX);
    spec.code = in.required_string("code", SIZE_MAX);
    spec.stdin_mode = mode_of(in.required_string("stdin", SIZE_MAX));
    spec.timeout_ms = in.optional_int("timeout_ms", 0, INT64_MAX).value_or(spec.timeout_ms);
    spec.output_max = static_cast<uint64_t>(in.optional_int("output_max", 0, INT64_MAX)
                                                .value_or(static_cast<int64_t>(spec.output_max)));
    if (in.optional_bool("discard").value_or(false)) spec.on_output_limit = OnOutputLimit::Discard;
    spec.inline_max = static_cast<size_t>(in.optional_int("inline_max", 1, INT64_MAX)
                                              .value_or(static_cast<int64_t>(spec.inline_max)));
    spec.cpu_time_ms = in.optional_int("cpu_time_ms", 0, INT64_MAX).value_or(0);
    spec.narrowed.memory_max =
        static_cast<uint64_t>(in.optional_int("memory_max", 0, INT64_MAX).value_or(0));
    spec.narrowed.pids_max =
        static_cast<uint32_t>(in.optional_int("pids_max", 0, UINT32_MAX).value_or(0));
    const json::object* network = in.optional_object("network");
    if (network != nullptr) spec.network = TRY(egress::policy_from(*network, "network."));
    spec.metrics = in.optional_bool("metrics").value_or(false);
    spec.filename = in.optional_string("filename", SIZE_MAX);
    spec.cwd = in.optional_string("cwd", SIZE_MAX);
    spec.argv = in.optional_strings("argv", SIZE_MAX, SIZE_MAX).value_or(spec.argv);
    spec.env = in.optional_string_map("env", SIZE_MAX, SIZE_MAX).value_or(spec.env);
    spec.stdin_text = TRY(bytes_of(in, "stdin_text"));
    spec.files = TRY(files_in(in));
    TRY_OK(in.finish());
    return spec;
}

}  // namespace cloister::engine
