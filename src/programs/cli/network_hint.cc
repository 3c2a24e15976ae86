#include "programs/cli/network_hint.h"

#include <algorithm>
#include <array>

namespace cloister::cli {
namespace {

// What C libraries, Python, Node, curl, pip and npm say.
constexpr std::array<std::string_view, 11> kPhrases = {
    "Network is unreachable",
    "ENETUNREACH",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Could not resolve host",
    "getaddrinfo ENOTFOUND",
    "getaddrinfo EAI_AGAIN",
    "Failed to establish a new connection",
    "No matching distribution found",
    "ModuleNotFoundError",
    "Cannot find module",
};
constexpr size_t kTail = 64;  // longer than any of them

}  // namespace

void NetworkHint::take(std::string_view text) {
    if (wanted_) return;
    tail_ += text;
    wanted_ = std::ranges::any_of(kPhrases, [this](std::string_view phrase) {
        return tail_.find(phrase) != std::string::npos;
    });
    if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
}

}  // namespace cloister::cli
