// Moves a file or directory, with the directories that its new place needs.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

struct MoveSettings {
    std::string to;
    bool overwrite = false;  // else what is there is AlreadyExists
    bool durable = false;
};

Task<Result<engine::FileEntry>> move_file(engine::Engine& engine, engine::Principal caller,
                                          FileInput input, MoveSettings settings);

}  // namespace cloister::ops
