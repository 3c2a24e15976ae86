#include "programs/egressd/pins.h"

#include "programs/egressd/limits.h"

namespace cloister::egressd {

void Pins::add(const std::string& name, const IpAddress& address, int64_t now_ms) {
    const auto [at, added] = until_.insert_or_assign(Pin{address, name}, now_ms + kPinMs);
    if (added) order_.push_back(at->first);
    while (order_.size() > kPinsMax) {
        until_.erase(order_.front());
        order_.pop_front();
    }
}

std::vector<std::string> Pins::names_of(const IpAddress& address, int64_t now_ms) const {
    std::vector<std::string> out;
    for (auto at = until_.lower_bound(Pin{address, ""});
         at != until_.end() && at->first.first == address; ++at) {
        if (at->second > now_ms) out.push_back(at->first.second);
    }
    return out;
}

std::vector<IpAddress> Pins::addresses_of(const std::string& name, int64_t now_ms) const {
    std::vector<IpAddress> out;
    for (const auto& [pin, until] : until_) {
        if (pin.second == name && until > now_ms) out.push_back(pin.first);
    }
    return out;
}

}  // namespace cloister::egressd
