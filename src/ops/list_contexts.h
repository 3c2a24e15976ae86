// The contexts of a sandbox, in the order in which they were made.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace cloister::ops {

Result<std::vector<std::shared_ptr<engine::Context>>> list_contexts(engine::Engine& engine,
                                                                    const engine::Principal& caller,
                                                                    std::string_view sandbox);

}  // namespace cloister::ops
