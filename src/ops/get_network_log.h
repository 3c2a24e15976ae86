// What became of a sandbox's connections and look-ups.
#pragma once

#include "engine/engine.h"

namespace cloister::ops {

struct GetNetworkLogInput {
    std::string_view sandbox_id;
    engine::Network::LogQuery query;
};
Result<json::object> get_network_log(engine::Engine& engine, const engine::Principal& caller,
                                     const GetNetworkLogInput& input);

}  // namespace cloister::ops
