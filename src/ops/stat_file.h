// What a file of a live sandbox is.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

enum class FollowLink { No, Yes };

Task<Result<engine::FileEntry>> stat_file(engine::Engine& engine, engine::Principal caller,
                                          FileInput input, FollowLink follow);

}  // namespace cloister::ops
