#include "ops/list_keys.h"

namespace cloister::ops {

std::vector<engine::KeyInfo> list_keys(engine::Engine& engine, const engine::Principal& caller) {
    return engine.keys().list(caller.project);
}

}  // namespace cloister::ops
