#include "ops/change_file.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<engine::FileEntry>> change_file(engine::Engine& engine, engine::Principal caller,
                                            FileInput input, FileChange change) {
    json::object request{{"op", "file.change"}};
    if (change.mode) request["mode"] = *change.mode;
    if (change.metadata) {
        json::object metadata;
        for (const auto& [key, value] : *change.metadata) metadata[key] = value;
        request["metadata"] = std::move(metadata);
    }
    co_return co_await ask_for_entry(engine, std::move(caller), std::move(input),
                                     std::move(request));
}

}  // namespace cloister::ops
