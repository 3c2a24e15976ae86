// What a client says first on a connection, as far as it tells whom it wants to reach.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "egress/http_requests.h"
#include "loop/descriptor.h"

namespace cloister::egressd {

struct Opening {
    enum class Kind {
        Tls,
        Http,
        Unclear,  // HTTP that could be read in two ways
        Other,    // some other protocol, or a server that speaks first
    } kind = Kind::Other;
    std::string name;   // canonical; empty: none, or an address
    std::string bytes;  // that were read, and are to be passed on
    std::string unclear;
};

// Reads until that is known. Cancelled if the client went away.
Task<Result<Opening>> read_opening(std::shared_ptr<Descriptor> client);

}  // namespace cloister::egressd
