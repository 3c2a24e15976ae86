// Writes several files, one after another as they come in one body.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/write_file.h"

namespace cloister::ops {

// A file of the body; its source has to be read to its end before the next one is asked for.
struct IncomingFile {
    std::string path;
    engine::ByteSource source;
};
// nullopt: there are no more.
using IncomingFiles = std::function<Task<Result<std::optional<IncomingFile>>>()>;

// Each file is whole or not there; after an error those before it are there. A path that comes
// twice is InvalidArgument. Relative paths begin at `input.path`.
Task<Result<std::vector<WrittenFile>>> upload_files(engine::Engine& engine,
                                                    engine::Principal caller, FileInput input,
                                                    engine::WriteSettings settings,
                                                    IncomingFiles files);

}  // namespace cloister::ops
