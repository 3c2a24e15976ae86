#include "ops/list_sandboxes.h"

namespace cloister::ops {

std::vector<engine::SandboxInfo> list_sandboxes(engine::Engine& engine,
                                                const engine::Principal& caller) {
    return engine.sandboxes().list(caller.project);
}

}  // namespace cloister::ops
