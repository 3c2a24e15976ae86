// RestFace: the whole REST API as one HTTP handler: gate, route, key, handler, answer, access log.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "faces/rest/call.h"
#include "faces/rest/gate.h"
#include "faces/rest/port_address.h"
#include "faces/rest/router.h"
#include "http/server.h"

namespace cloister::rest {

class RestFace : public std::enable_shared_from_this<RestFace> {
  public:
    // `domain`: `PORT-ID.domain` are names of the ports of sandboxes; empty: they have none.
    RestFace(std::shared_ptr<engine::Engine> engine, std::vector<std::string> names,
             std::string domain);

    // For http::Server::create. The handler keeps the face alive.
    http::Handler handler();
    // Since when (steady) no request but health checks came; the far future while one is being
    // answered.
    int64_t quiet_since() const;

  private:
    static Task<void> handle(std::shared_ptr<RestFace> self, http::Request& request,
                             http::Response& response);
    Task<Result<Answer>> dispatch(Call& call);
    Result<void> authenticate(Call& call, Key key) const;
    Task<Result<Answer>> dispatch_to_port(Call& call, PortAddress address) const;
    Result<void> check_signature(Call& call, const std::string& signature) const;
    Task<int> answer(Call& call, Result<Answer> result) const;

    const std::shared_ptr<engine::Engine> engine_;
    const Gate gate_;
    const std::string domain_;
    size_t open_ = 0;
    int64_t last_request_;
};

}  // namespace cloister::rest
