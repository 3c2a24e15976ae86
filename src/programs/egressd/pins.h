// What a sandbox learned from look-ups: which names an address was given for, and which addresses a
// name has. An address alone does not prove a name (two names may share one), so this is what
// remains when a client tells nothing else.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/ip.h"

namespace cloister::egressd {

class Pins {
  public:
    void add(const std::string& name, const IpAddress& address, int64_t now_ms);
    std::vector<std::string> names_of(const IpAddress& address, int64_t now_ms) const;
    std::vector<IpAddress> addresses_of(const std::string& name, int64_t now_ms) const;

  private:
    using Pin = std::pair<IpAddress, std::string>;
    std::map<Pin, int64_t> until_;  // by address
    std::deque<Pin> order_;         // the oldest goes when there are too many
};

}  // namespace cloister::egressd
