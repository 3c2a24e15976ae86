// Checks that several operations share. Each error names the field and the way out.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/policy.h"
#include "engine/run.h"
#include "engine/sandbox.h"
#include "wire/json.h"

namespace cloister::ops {

// NotFound unless `id` has the form of an id: nothing else can exist, and nothing else goes
// further.
Result<void> check_id(std::string_view noun, std::string_view id);
Result<void> check_language(std::string_view name);
Result<void> check_env(std::string_view field, const StringMap& env);
// A path inside a sandbox: UTF-8, not empty, without NUL, at most 4096 bytes.
Result<void> check_path(std::string_view field, std::string_view path);
// "a.txt" → "/home/user/a.txt"
std::string absolute(std::string_view path);
// An agent's error about a file, with the path as the field at fault where another path would help.
Error of_path(Error error);
Result<void> check_run(const engine::RunSpec& spec);
// The template of the sandbox must have the language; an empty one is that of a context.
Result<void> check_language_in(const engine::SandboxSpec& sandbox, std::string_view language);
// In canonical form. The error names the field (with `prefix` in front) and the entry.
Result<egress::PolicySpec> check_policy(const std::shared_ptr<const egress::Platform>& platform,
                                        std::string_view prefix, const egress::PolicySpec& policy);
// A run may only narrow the limits of its sandbox.
Result<void> check_narrowed(const engine::RunSpec& run, const engine::SandboxSpec& sandbox);

}  // namespace cloister::ops
