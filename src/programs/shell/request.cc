#include "programs/shell/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/limits.h"

namespace cloister::shell {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_name(std::string_view text) {
    const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
           std::ranges::all_of(text, fits);
}

Result<void> check_no_zero(std::string_view what, std::string_view text) {
    if (text.find('\0') == std::string_view::npos) return {};
    return make_error(
        ErrorKind::InvalidArgument,
        fmt::format("{} holds a zero byte, which bash cannot hold: write it as $'\\0' or "
                    "with printf",
                    what));
}

Result<void> check(const Request& request) {
    TRY_OK(check_no_zero("the code", request.code));
    TRY_OK(check_no_zero("`filename`", request.filename.value_or("")));
    TRY_OK(check_no_zero("`cwd`", request.cwd));
    for (const std::string& word : request.argv.value_or(std::vector<std::string>{})) {
        TRY_OK(check_no_zero("`argv`", word));
    }
    for (const auto& [name, value] : request.env) {
        TRY_OK(check_no_zero("`env`", value));
        if (is_name(name)) continue;
        return make_error(
            ErrorKind::InvalidArgument,
            fmt::format("`env`: `{}` is no name for a variable of the shell: use letters, digits "
                        "and `_`, or `env {}=… program` in the code",
                        name, name));
    }
    return {};
}

}  // namespace

Result<Request> request_of(Message message) {
    FieldReader in(message.content, "");
    Request request;
    request.code = in.required_string("code", limits::kCodeMax);
    request.filename = in.optional_string("filename", limits::kPathMax);
    request.argv = in.optional_strings("argv", limits::kArgvMax, limits::kEnvBytesMax);
    request.env = in.optional_string_map("env", limits::kEnvEntriesMax, limits::kEnvBytesMax)
                      .value_or(StringMap{});
    request.cwd = in.optional_string("cwd", limits::kPathMax).value_or("");
    const bool has_stdin = in.optional_bool("stdin").value_or(false);
    TRY_OK(in.finish());
    if (has_stdin && !message.fds.empty()) request.stdin_fd = std::move(message.fds[0]);
    if (request.code.starts_with(kByteOrderMark)) request.code.erase(0, kByteOrderMark.size());
    TRY_OK(check(request));
    return request;
}

}  // namespace cloister::shell
