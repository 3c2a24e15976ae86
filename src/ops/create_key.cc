#include "ops/create_key.h"

namespace cloister::ops {

Result<engine::NewKey> create_key(engine::Engine& engine, const engine::Principal& caller,
                                  const std::string& name) {
    return engine.keys().create(caller.project, name);
}

}  // namespace cloister::ops
