// Whether a program failed for want of a network, by what it wrote.
#pragma once

#include <string>
#include <string_view>

namespace cloister::cli {

inline constexpr std::string_view kNetworkHint =
    "this sandbox had no network: `cloister run --allow HOST` lets it reach a host, `--net open` "
    "all of them";

// Looks through what a program writes, piece by piece.
class NetworkHint {
  public:
    void take(std::string_view text);
    // It said that there was no network, or lacked what a network could have brought.
    bool wanted() const { return wanted_; }

  private:
    std::string tail_;  // of the piece before, where a phrase may have begun
    bool wanted_ = false;
};

}  // namespace cloister::cli
