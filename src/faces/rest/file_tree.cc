// statFile, listFiles, searchFiles, makeDirectory, moveFile, copyFile, changeFile, removeFile,
// signFile.
#include <fmt/format.h>

#include <utility>

#include "base/time.h"
#include "faces/rest/body.h"
#include "faces/rest/file_requests.h"
#include "faces/rest/handlers.h"
#include "ops/remove_file.h"
#include "ops/sign_file.h"
#include "ops/stat_file.h"

namespace cloister::rest {
namespace {

Answer entry_answer(int status, const engine::FileEntry& entry) {
    return Answer::json(status, entry_json(entry));
}

json::object match_json(const ops::FileMatch& match) {
    json::object out{{"entry", entry_json(match.entry)}};
    if (match.line) {
        out["line"] = match.line->number;
        out["column"] = match.line->column;
        out["text"] = match.line->text;
    }
    return out;
}

// As in the query of a URL: a space is %20, and so is everything that could mean something there.
std::string query_escaped(std::string_view text) {
    constexpr std::string_view kPlain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    std::string out;
    for (const char c : text) {
        if (kPlain.find(c) != std::string_view::npos) {
            out += c;
        } else {
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

}  // namespace

Task<Result<Answer>> stat_file(Call& call) {
    const Result<ops::FileInput> input = file_input(call);
    if (!input) co_return input.error();
    const Result<bool> follow = query_flag(call, "follow");
    if (!follow) co_return follow.error();
    const auto how = *follow ? ops::FollowLink::Yes : ops::FollowLink::No;
    const auto entry = co_await ops::stat_file(*call.engine, call.caller, *input, how);
    if (!entry) co_return entry.error();
    co_return entry_answer(200, *entry);
}

Task<Result<Answer>> list_files(Call& call) {
    const Result<ops::FileInput> input = file_input(call, "/home/user");
    if (!input) co_return input.error();
    Result<ops::ListSettings> settings = list_settings(call);
    if (!settings) co_return std::move(settings).error();
    const auto list =
        co_await ops::list_files(*call.engine, call.caller, *input, std::move(*settings));
    if (!list) co_return list.error();
    json::array entries;
    for (const engine::FileEntry& entry : list->entries) entries.push_back(entry_json(entry));
    json::object out{{"entries", std::move(entries)}};
    if (list->next) out["next"] = *list->next;
    co_return Answer::json(200, out);
}

Task<Result<Answer>> search_files(Call& call) {
    const Result<ops::FileInput> input = file_input(call, "/home/user");
    if (!input) co_return input.error();
    Result<ops::SearchSettings> settings = search_settings(call);
    if (!settings) co_return std::move(settings).error();
    const auto found =
        co_await ops::search_files(*call.engine, call.caller, *input, std::move(*settings));
    if (!found) co_return found.error();
    json::array matches;
    for (const ops::FileMatch& match : found->matches) matches.push_back(match_json(match));
    co_return Answer::json(200, {{"matches", std::move(matches)},
                                 {"truncated", found->truncated},
                                 {"entries_seen", found->entries_seen}});
}

Task<Result<Answer>> make_directory(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    auto body = decode_make_directory(*text, call.parameters[0]);
    if (!body) co_return std::move(body).error();
    const auto made = co_await ops::make_directory(*call.engine, call.caller,
                                                   std::move(body->input), body->settings);
    if (!made) co_return made.error();
    co_return entry_answer(made->created ? 201 : 200, made->entry);
}

Task<Result<Answer>> move_file(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    auto body = decode_move(*text, call.parameters[0]);
    if (!body) co_return std::move(body).error();
    const auto entry = co_await ops::move_file(*call.engine, call.caller, std::move(body->input),
                                               std::move(body->settings));
    if (!entry) co_return entry.error();
    co_return entry_answer(200, *entry);
}

Task<Result<Answer>> copy_file(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    auto body = decode_copy(*text, call.parameters[0]);
    if (!body) co_return std::move(body).error();
    const auto entry = co_await ops::copy_file(*call.engine, call.caller, std::move(body->input),
                                               std::move(body->settings));
    if (!entry) co_return entry.error();
    co_return entry_answer(200, *entry);
}

Task<Result<Answer>> change_file(Call& call) {
    const Result<ops::FileInput> input = file_input(call);
    if (!input) co_return input.error();
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    Result<ops::FileChange> change = decode_change(*text);
    if (!change) co_return std::move(change).error();
    const auto entry =
        co_await ops::change_file(*call.engine, call.caller, *input, std::move(*change));
    if (!entry) co_return entry.error();
    co_return entry_answer(200, *entry);
}

Task<Result<Answer>> remove_file(Call& call) {
    const Result<ops::FileInput> input = file_input(call);
    if (!input) co_return input.error();
    const Result<bool> recursive = query_flag(call, "recursive");
    if (!recursive) co_return recursive.error();
    const auto how = *recursive ? ops::Recursive::Yes : ops::Recursive::No;
    const auto gone = co_await ops::remove_file(*call.engine, call.caller, *input, how);
    if (!gone) co_return gone.error();
    co_return Answer::nothing();
}

Task<Result<Answer>> sign_file(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    const auto body = decode_sign(*text, call.parameters[0]);
    if (!body) co_return body.error();
    const auto file =
        ops::sign_file(*call.engine, call.caller, body->input, body->access, body->lifetime_ms);
    if (!file) co_return file.error();
    const std::string url =
        fmt::format("/v1/sandboxes/{}/files?path={}&signature={}", call.parameters[0],
                    query_escaped(file->path), query_escaped(file->signature));
    co_return Answer::json(200,
                           {{"url", url},
                            {"method", body->access == engine::FileAccess::Read ? "GET" : "PUT"},
                            {"expires_at", rfc3339(file->expires_ms)}});
}

}  // namespace cloister::rest
