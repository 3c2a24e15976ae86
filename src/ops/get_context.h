// A context of a sandbox.
#pragma once

#include <memory>
#include <string_view>

#include "engine/engine.h"

namespace cloister::ops {

struct ContextPlace {
    std::shared_ptr<engine::Sandbox> sandbox;
    std::shared_ptr<engine::Context> context;
};
Result<ContextPlace> get_context(engine::Engine& engine, const engine::Principal& caller,
                                 std::string_view sandbox, std::string_view id);

}  // namespace cloister::ops
