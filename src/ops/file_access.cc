#include "ops/file_access.h"

#include <cerrno>
#include <utility>

#include "base/limits.h"
#include "ops/validate.h"
#include "wire/file_limits.h"

namespace cloister::ops {

Result<std::shared_ptr<engine::Sandbox>> find_for_file(engine::Engine& engine,
                                                       const engine::Principal& caller,
                                                       const FileInput& input,
                                                       std::string_view field) {
    TRY_OK(check_id("sandbox", input.sandbox_id));
    TRY_OK(check_path(field, input.path));
    if (input.user != "user" && input.user != "root") {
        return invalid_field("user", "`user` must be `user` or `root`");
    }
    return engine.sandboxes().find_live(caller.project, input.sandbox_id);
}

Task<Result<engine::Awake>> awaken_for_file(engine::Engine& engine, engine::Principal caller,
                                            FileInput input) {
    const auto sandbox = find_for_file(engine, caller, input);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine.sandboxes().awaken(std::move(caller.project),
                                                 std::move(input.sandbox_id));
}

engine::FileTarget target_of(FileInput input) {
    return {.path = std::move(input.path), .user = std::move(input.user)};
}

Error of_file(Error error) {
    const int os_error = error.os_error;
    if (!error.field.empty()) return error;  // of the body, which names itself
    switch (error.kind) {
        case ErrorKind::InvalidArgument:
        case ErrorKind::PermissionDenied:
            return invalid_field("path", std::move(error.message));
        case ErrorKind::ResourceExhausted:
            if (os_error == ENOSPC || os_error == EDQUOT || os_error == EFBIG)
                error.kind = ErrorKind::TooLarge;
            return error;
        default:
            return error;
    }
}

Task<Result<json::object>> ask_about_file(engine::Engine& engine, engine::Principal caller,
                                          FileInput input, json::object request) {
    auto awake = co_await awaken_for_file(engine, std::move(caller), input);
    if (!awake) co_return awake.error();
    auto answer = co_await engine::ask_about_file(awake->sandbox->agent_socket(),
                                                  target_of(std::move(input)), std::move(request));
    if (!answer) co_return of_file(std::move(answer).error());
    co_return answer;
}

Task<Result<engine::FileEntry>> ask_for_entry(engine::Engine& engine, engine::Principal caller,
                                              FileInput input, json::object request) {
    const auto answer =
        co_await ask_about_file(engine, std::move(caller), std::move(input), std::move(request));
    if (!answer) co_return answer.error();
    co_return engine::file_entry_from(answer->if_contains("entry"));
}

Result<std::vector<engine::FileEntry>> entries_in(const json::value* list) {
    if (list == nullptr || !list->is_array() || list->as_array().size() > limits::kFilePageMax) {
        return make_error(ErrorKind::Unavailable, "the sandbox's agent told nonsense about files");
    }
    std::vector<engine::FileEntry> entries;
    for (const json::value& one : list->as_array()) {
        entries.push_back(TRY(engine::file_entry_from(&one)));
    }
    return entries;
}

}  // namespace cloister::ops
