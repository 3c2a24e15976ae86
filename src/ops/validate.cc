#include "ops/validate.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "wire/templates.h"

namespace cloister::ops {
namespace {

bool has_nul(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

Result<void> check_no_nul(std::string_view field, std::string_view text) {
    if (!has_nul(text)) return {};
    return invalid_field(std::string(field),
                         fmt::format("`{}` must not hold a NUL character", field));
}

}  // namespace

Result<void> check_id(std::string_view noun, std::string_view id) {
    if (is_id(id)) return {};
    return make_error(
        ErrorKind::NotFound,
        fmt::format("this is not the id of a {}: ids are 20 lower-case letters and digits", noun));
}

Result<void> check_language(std::string_view name) {
    if (is_language(name) || find_kernelspec(name)) return {};
    return invalid_field(
        "language", fmt::format("no language `{}`: this service has {}", name, language_names()));
}

Result<void> check_env(std::string_view field, const StringMap& env) {
    for (const auto& [name, value] : env) {
        if (name.empty() || name.find('=') != std::string::npos || has_nul(name)) {
            return invalid_field(
                std::string(field),
                fmt::format("a name in `{}` must not be empty and must not hold `=` or NUL",
                            field));
        }
        TRY_OK(check_no_nul(fmt::format("{}.{}", field, name), value));
    }
    return {};
}

Result<void> check_path(std::string_view field, std::string_view path) {
    const bool good =
        !path.empty() && path.size() <= limits::kPathMax && !has_nul(path) && is_utf8(path);
    if (good) return {};
    return invalid_field(std::string(field),
                         fmt::format("`{}` must be a path of 1 to {} bytes of UTF-8 without NUL",
                                     field, limits::kPathMax));
}

std::string absolute(std::string_view path) {
    return path.starts_with('/') ? std::string(path) : "/home/user/" + std::string(path);
}

Error of_path(Error error) {
    const bool other_path_helps =
        error.kind == ErrorKind::InvalidArgument || error.kind == ErrorKind::FailedPrecondition ||
        error.kind == ErrorKind::PermissionDenied || error.kind == ErrorKind::AlreadyExists;
    if (other_path_helps) return invalid_field("path", std::move(error.message));
    if (error.kind == ErrorKind::ResourceExhausted) error.kind = ErrorKind::TooLarge;
    return error;
}

Result<void> check_run(const engine::RunSpec& spec) {
    if (!spec.language.empty()) TRY_OK(check_language(spec.language));
    if (!spec.context_id.empty()) TRY_OK(check_id("context", spec.context_id));
    TRY_OK(check_no_nul("filename", spec.filename.value_or("")));
    TRY_OK(check_env("env", spec.env));
    for (const std::string& argument : spec.argv) TRY_OK(check_no_nul("argv", argument));
    if (spec.cwd) TRY_OK(check_path("cwd", *spec.cwd));
    for (size_t i = 0; i < spec.files.size(); ++i) {
        TRY_OK(check_path(fmt::format("files[{}].path", i), spec.files[i].path));
    }
    return {};
}

Result<void> check_language_in(const engine::SandboxSpec& sandbox, std::string_view language) {
    if (language.empty()) return {};           // that of the context, or what every template has
    if (find_kernelspec(language)) return {};  // which are installed, the sandbox knows
    const size_t own = TRY(get_built_in_template(sandbox.template_name));
    if (has_language(kBuiltInTemplates[own], language)) return {};
    return invalid_field(
        "language",
        fmt::format("the template `{}` has no `{}`: make the sandbox with the template `{}`",
                    kBuiltInTemplates[own].name, language,
                    find_template_of(language).value_or("")));
}

Result<egress::PolicySpec> check_policy(const std::shared_ptr<const egress::Platform>& platform,
                                        std::string_view prefix, const egress::PolicySpec& policy) {
    auto made = egress::Policy::create(policy, platform);
    if (made) return made->spec();
    Error error = std::move(made).error();
    error.field = std::string(prefix) + error.field;
    return error;
}

Result<void> check_narrowed(const engine::RunSpec& run, const engine::SandboxSpec& sandbox) {
    const uint64_t most = sandbox.memory_mb * limits::kMiB;
    if (run.narrowed.memory_max <= most) return {};
    return invalid_field(
        "memory_max_bytes",
        fmt::format("`memory_max_bytes` must be at most {}, the memory of the sandbox: a run can "
                    "only narrow it (a sandbox is made larger with `memory_mb`)",
                    most));
}

}  // namespace cloister::ops
