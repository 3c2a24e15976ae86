// Looks names up at the host's DNS servers (or those of the configuration), with a small cache.
// Threading: the loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "egress/dns_message.h"
#include "loop/loop.h"

namespace cloister::egressd {

class Resolver {
  public:
    explicit Resolver(std::vector<Endpoint> servers) : servers_(std::move(servers)) {}

    // `name` is canonical. NoSuchName is an answer; Unavailable if no server gives one.
    Task<Result<egress::dns::ServerAnswer>> resolve(std::string name, egress::dns::Type type);

  private:
    struct Cached {
        egress::dns::ServerAnswer answer;
        int64_t until_ms = 0;
    };
    using Key = std::pair<std::string, egress::dns::Type>;
    void keep(const Key& key, const egress::dns::ServerAnswer& answer);

    const std::vector<Endpoint> servers_;
    std::map<Key, Cached> cache_;
};

// The servers in the text of a resolv.conf.
std::vector<Endpoint> servers_of(std::string_view resolv_conf);

}  // namespace cloister::egressd
