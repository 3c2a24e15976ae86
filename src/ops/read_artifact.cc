#include "ops/read_artifact.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "ops/get_run.h"
#include "ops/read_file.h"

namespace cloister::ops {

namespace {

std::optional<std::string> path_in(const json::object& record, size_t index) {
    const json::value* list = record.if_contains("artifacts");
    if (list == nullptr || !list->is_array() || index >= list->as_array().size())
        return std::nullopt;
    return std::string(list->as_array()[index].as_object().at("path").as_string());
}

}  // namespace

Task<Result<Attachment>> read_artifact(engine::Engine& engine, engine::Principal caller,
                                       std::string run_id, size_t index) {
    const auto record = get_run(engine, caller, run_id);
    if (!record) co_return record.error();
    const std::optional<std::string> path = path_in(*record, index);
    if (!path) {
        co_return make_error(
            ErrorKind::NotFound,
            fmt::format("the run has no artifact {}: its record lists them", index));
    }
    auto file = co_await engine.artifacts().open(run_id, index);
    if (!file) {
        const std::string sandbox(record->at("sandbox_id").as_string());
        auto live = co_await read_file(engine, caller, {.sandbox_id = sandbox, .path = *path});
        if (live) file = std::move(live);
    }
    if (!file) co_return std::move(file).error();
    Attachment out{.path = *path, .file = std::move(*file)};
    co_return out;
}

}  // namespace cloister::ops
