#include "ops/list_files.h"

#include <utility>

namespace cloister::ops {

Task<Result<FileList>> list_files(engine::Engine& engine, engine::Principal caller, FileInput input,
                                  ListSettings settings) {
    json::object request{{"op", "file.list"}, {"depth", settings.depth}, {"limit", settings.limit}};
    if (!settings.after.empty()) request["after"] = std::move(settings.after);
    const auto answer =
        co_await ask_about_file(engine, std::move(caller), std::move(input), std::move(request));
    if (!answer) co_return answer.error();
    auto entries = entries_in(answer->if_contains("entries"));
    if (!entries) co_return std::move(entries).error();
    FileList list{.entries = std::move(*entries), .next = std::nullopt};
    const json::value* next = answer->if_contains("next");
    if (next != nullptr && next->is_string()) list.next = std::string(next->as_string());
    co_return list;
}

}  // namespace cloister::ops
