#include "ops/make_directory.h"

#include <utility>

namespace cloister::ops {

Task<Result<MadeDirectory>> make_directory(engine::Engine& engine, engine::Principal caller,
                                           FileInput input, DirectorySettings settings) {
    json::object request{
        {"op", "file.mkdir"}, {"exclusive", settings.exclusive}, {"durable", settings.durable}};
    if (settings.mode) request["mode"] = *settings.mode;
    const auto answer =
        co_await ask_about_file(engine, std::move(caller), std::move(input), std::move(request));
    if (!answer) co_return answer.error();
    auto entry = engine::file_entry_from(answer->if_contains("entry"));
    if (!entry) co_return std::move(entry).error();
    const json::value* created = answer->if_contains("created");
    MadeDirectory made{.entry = std::move(*entry),
                       .created = created != nullptr && created->is_bool() && created->as_bool()};
    co_return made;
}

}  // namespace cloister::ops
