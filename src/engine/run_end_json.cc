#include "engine/run_end_json.h"

#include <algorithm>

#include "base/limits.h"
#include "base/utf8.h"
#include "engine/mime.h"

namespace cloister::engine {
namespace {

constexpr size_t kMessageMax = 4 * limits::kKiB;
constexpr size_t kLimitsHitMax = 16;
constexpr size_t kLimitNameMax = 64;

int64_t number_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    boost::system::error_code failure;
    const int64_t number =
        value != nullptr && value->is_number() ? value->to_number<int64_t>(failure) : 0;
    return failure ? 0 : std::max<int64_t>(number, 0);
}

// Cut at the end of a character.
std::string bounded(std::string_view text, size_t max_bytes) {
    text = text.substr(0, max_bytes);
    return std::string(text.substr(0, text.size() - incomplete_tail(text)));
}

std::string text_of(const json::object& object, std::string_view name, size_t max_bytes) {
    const json::value* value = object.if_contains(name);
    if (value == nullptr || !value->is_string()) return {};
    return bounded(value->as_string(), max_bytes);
}

const json::array& list_of(const json::object& object, std::string_view name) {
    static const json::array none;
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_array() ? value->as_array() : none;
}

std::optional<int> exit_code_of(const json::object& event) {
    const json::value* value = event.if_contains("exit_code");
    if (value == nullptr || !value->is_int64()) return std::nullopt;
    return static_cast<int>(std::clamp<int64_t>(value->as_int64(), -255, 255));
}

RunUsage usage_of(const json::object& event) {
    const json::value* value = event.if_contains("usage");
    if (value == nullptr || !value->is_object()) return {};
    const json::object& usage = value->as_object();
    return {.wall_ms = number_of(usage, "wall_ms"),
            .cpu_ms = number_of(usage, "cpu_ms"),
            .memory_peak_bytes = static_cast<uint64_t>(number_of(usage, "memory_peak_bytes")),
            .output_bytes = static_cast<uint64_t>(number_of(usage, "output_bytes")),
            .discarded_bytes = static_cast<uint64_t>(number_of(usage, "discarded_bytes"))};
}

std::optional<LimitFired> limit_of(const json::object& event) {
    const json::value* value = event.if_contains("limit");
    if (value == nullptr || !value->is_object()) return std::nullopt;
    const json::object& limit = value->as_object();
    return LimitFired{.name = text_of(limit, "name", kLimitNameMax),
                      .value = static_cast<uint64_t>(number_of(limit, "value"))};
}

std::vector<std::string> limits_of(const json::object& event) {
    std::vector<std::string> out;
    for (const json::value& limit : list_of(event, "limits_hit")) {
        if (!limit.is_string() || out.size() == kLimitsHitMax) continue;
        out.push_back(bounded(limit.as_string(), kLimitNameMax));
    }
    return out;
}

json::array artifacts_json(const std::vector<Artifact>& artifacts) {
    json::array out;
    for (const Artifact& file : artifacts) {
        out.push_back({{"path", file.path}, {"size", file.size}, {"mime", mime_of(file.path)}});
    }
    return out;
}

}  // namespace

std::vector<Artifact> artifacts_of(const json::object& event) {
    std::vector<Artifact> out;
    for (const json::value& entry : list_of(event, "artifacts")) {
        if (!entry.is_object() || out.size() == limits::kArtifactsMax) continue;
        const json::object& file = entry.as_object();
        const std::string path = text_of(file, "path", limits::kPathMax);
        if (!path.starts_with('/')) continue;
        out.push_back({.path = path,
                       .size = static_cast<uint64_t>(number_of(file, "size")),
                       .modified_ms = number_of(file, "modified_ms")});
    }
    return out;
}

Result<RunEnd> decode_run_end(const json::object& event) {
    const std::string word = text_of(event, "reason", kLimitNameMax);
    const std::optional<EndReason> reason = end_reason_from(word);
    if (!reason) {
        return make_error(ErrorKind::Unavailable, "the sandbox's agent gave no known end reason");
    }
    const json::value* lost = event.if_contains("state_lost");
    return RunEnd{
        .reason = *reason,
        .exit_code = exit_code_of(event),
        .message = text_of(event, "message", kMessageMax),
        .state_lost = lost != nullptr && lost->is_bool() && lost->as_bool(),
        .limit = limit_of(event),
        .limits_hit = limits_of(event),
        .usage = usage_of(event),
        .artifacts = artifacts_of(event),
        .artifacts_left_out = static_cast<uint64_t>(number_of(event, "artifacts_left_out"))};
}

void add_run_end(json::object& run, const RunEnd& end) {
    run["end_reason"] = to_string(end.reason);
    run["exit_code"] = end.exit_code ? json::value(*end.exit_code) : json::value(nullptr);
    run["message"] = end.message;
    run["state_lost"] = end.state_lost;
    run["retryable"] = is_retryable(end.reason);
    if (end.limit) run["limit"] = {{"name", end.limit->name}, {"value", end.limit->value}};
    run["limits_hit"] = json::array(end.limits_hit.begin(), end.limits_hit.end());
    run["artifacts"] = artifacts_json(end.artifacts);
    run["artifacts_left_out"] = end.artifacts_left_out;
    run["metrics"] = {{"wall_ms", end.usage.wall_ms},
                      {"cpu_ms", end.usage.cpu_ms},
                      {"memory_peak_bytes", end.usage.memory_peak_bytes},
                      {"output_bytes", end.usage.output_bytes},
                      {"discarded_bytes", end.usage.discarded_bytes}};
}

}  // namespace cloister::engine
