// What operations answer → JSON bodies, as the schemas of contract/openapi.yaml.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/keys.h"
#include "engine/sandboxes.h"
#include "ops/get_capabilities.h"
#include "ops/get_limits.h"
#include "ops/get_pool.h"
#include "ops/status.h"
#include "wire/json.h"

namespace cloister::rest {

json::object sandbox_json(const engine::SandboxInfo& sandbox);
// The record of a run, with the URLs of its artifacts.
json::object context_json(const engine::Context& context);
json::object run_json(json::object record);
json::object key_json(const engine::KeyInfo& key);
json::object status_json(const ops::Status& status);
json::object pool_json(const ops::PoolUse& pool);
json::object capabilities_json(const ops::Capabilities& all);
json::object limits_json(std::span<const LimitRow> table);
json::object health_json();

}  // namespace cloister::rest
