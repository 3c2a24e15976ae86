#include "faces/rest/encode.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/time.h"
#include "engine/tier.h"

namespace cloister::rest {
namespace {

std::string_view word_of(uint32_t cgroup_mode) {
    switch (static_cast<warden::CgroupMode>(cgroup_mode)) {
        case warden::CgroupMode::V1:
            return "v1";
        case warden::CgroupMode::Hybrid:
            return "hybrid";
        case warden::CgroupMode::V2:
            return "v2";
        case warden::CgroupMode::None:
            return "none";
    }
    return "none";
}

// Without egress nothing is carried, and nothing but `disabled` can be asked for.
json::array network_modes(bool carries) {
    json::array out{to_string(egress::Mode::Disabled)};
    if (carries) out.emplace_back(to_string(egress::Mode::Filtered));
    if (carries) out.emplace_back(to_string(egress::Mode::Open));
    return out;
}

json::object states_json(const std::vector<Check>& checks) {
    json::object out;
    for (const Check& check : checks) out[check.name] = to_string(check.state);
    return out;
}

// What only some sandboxes have. The deadline of a paused one is what it would be if it went on
// now.
void add_life(json::object& out, const engine::SandboxInfo& sandbox) {
    const engine::Lifespan& span = sandbox.spec.lifespan;
    const bool paused = sandbox.state == engine::SandboxState::Paused;
    if (span.deadline_ms) {
        const int64_t waited = paused ? unix_ms() - sandbox.paused_ms : 0;
        out["deadline"] = rfc3339(*span.deadline_ms + waited);
        out["on_deadline"] = to_string(span.on_deadline);
    }
    if (paused) out["paused_at"] = rfc3339(sandbox.paused_ms);
    if (!sandbox.lost.empty()) out["state_lost"] = sandbox.lost;
    if (!sandbox.ended.empty()) out["end_reason"] = sandbox.ended;
}

}  // namespace

json::object sandbox_json(const engine::SandboxInfo& sandbox) {
    json::object metadata;
    for (const auto& [name, value] : sandbox.spec.metadata) metadata[name] = value;
    const engine::Lifespan& span = sandbox.spec.lifespan;
    json::object out{{"id", sandbox.id},
                     {"template", sandbox.spec.template_name},
                     {"state", to_string(sandbox.state)},
                     {"tier", engine::kTier},
                     {"cpu", sandbox.spec.cpu},
                     {"memory_mb", sandbox.spec.memory_mb},
                     {"disk_mb", sandbox.spec.disk_mb},
                     {"idle_timeout_seconds",
                      span.idle_seconds ? json::value(*span.idle_seconds) : json::value()},
                     {"on_idle", to_string(span.at_idle())},
                     {"metadata", std::move(metadata)},
                     {"network", {{"mode", egress::to_string(sandbox.spec.network.mode)}}},
                     {"created_at", rfc3339(sandbox.created_ms)}};
    add_life(out, sandbox);
    return out;
}

json::object context_json(const engine::Context& context) {
    const engine::ContextSpec& spec = context.spec();
    json::object out{{"id", context.id()},
                     {"language", spec.language},
                     {"cwd", spec.cwd},
                     {"default", spec.origin == engine::ContextSpec::Origin::Default},
                     {"state", to_string(context.state())},
                     {"queued", context.queued()},
                     {"created_at", rfc3339(context.created_ms())}};
    if (context.active()) out["run_id"] = context.active()->id();
    if (!context.started_as().empty()) out["started_as"] = context.started_as();
    return out;
}

json::object run_json(json::object record) {
    const std::string id(record.at("id").as_string());
    // Where all is that the answer has only head and tail of.
    for (const char* name : {"stdout", "stderr"}) {
        json::value* output = record.if_contains(name);
        if (output != nullptr && output->at("omitted_bytes").to_number<uint64_t>() > 0)
            output->as_object()["url"] = fmt::format("/v1/runs/{}/output?stream={}", id, name);
    }
    json::value* artifacts = record.if_contains("artifacts");
    if (artifacts == nullptr) return record;
    size_t index = 0;
    for (json::value& artifact : artifacts->as_array()) {
        artifact.as_object()["url"] = fmt::format("/v1/runs/{}/artifacts/{}", id, index++);
    }
    return record;
}

json::object key_json(const engine::KeyInfo& key) {
    json::object out{{"id", key.id},
                     {"name", key.name},
                     {"prefix", key.prefix},
                     {"created_at", rfc3339(key.created_ms)}};
    if (key.last_used_ms) out["last_used_at"] = rfc3339(*key.last_used_ms);
    return out;
}

json::object status_json(const ops::Status& status) {
    const warden::HelloReply& host = status.host;
    return {{"version", CLOISTER_VERSION},
            {"tier", engine::kTier},
            {"cgroups", word_of(host.cgroup_mode)},
            {"limits", states_json(check_limits(facts_of(host), {}))},
            {"sandboxes", status.sandboxes},
            {"runs", status.runs},
            {"pool", {{"bytes", host.pool_bytes}, {"free", host.pool_free}}},
            {"warm",
             {{"target", status.warm.target},
              {"ready", status.warm.ready},
              {"memory_bytes", status.warm.memory_bytes},
              {"budget_bytes", status.warm.budget_bytes},
              {"hits", status.warm.hits},
              {"misses", status.warm.misses}}},
            {"host", {{"cpus", host.host_cpus}, {"memory_bytes", host.host_memory}}},
            {"uptime_seconds", status.uptime_seconds}};
}

json::object pool_json(const ops::PoolUse& pool) {
    json::array sandboxes;
    for (const ops::SandboxDisk& sandbox : pool.sandboxes) {
        sandboxes.push_back(
            {{"id", sandbox.id}, {"used_bytes", sandbox.used}, {"max_bytes", sandbox.max}});
    }
    return {{"bytes", pool.bytes},
            {"used_bytes", pool.bytes - pool.free},
            {"free_bytes", pool.free},
            {"template_bytes", pool.template_bytes},
            {"sandboxes", std::move(sandboxes)}};
}

json::object capabilities_json(const ops::Capabilities& all) {
    const warden::HelloReply& host = all.host;
    return {{"version", CLOISTER_VERSION},
            {"tier", engine::kTier},
            {"tiers", checks_json(check_tiers())},
            {"isolation", checks_json(check_isolation(all.kernel))},
            {"limits", checks_json(check_limits(facts_of(host), all.kernel))},
            {"pause", checks_json(check_pause(facts_of(host)))},
            {"pause_reclaims", (host.pause & static_cast<uint32_t>(warden::Pause::Reclaims)) != 0},
            {"network", {{"modes", network_modes(all.carries_network)}}},
            {"kernel", all.kernel.release},
            {"cgroups", word_of(host.cgroup_mode)},
            {"landlock_abi", all.kernel.landlock},
            {"pool", {{"bytes", host.pool_bytes}, {"free", host.pool_free}}},
            {"host", {{"cpus", host.host_cpus}, {"memory_bytes", host.host_memory}}}};
}

json::object limits_json(std::span<const LimitRow> table) {
    json::array rows;
    for (const LimitRow& row : table) {
        rows.push_back({{"name", row.name},
                        {"value", row.value},
                        {"unit", to_string(row.unit)},
                        {"description", row.words},
                        {"beyond", row.beyond}});
    }
    return {{"limits", std::move(rows)}};
}

json::object health_json() {
    return {{"status", "ok"}, {"version", CLOISTER_VERSION}};
}

}  // namespace cloister::rest
