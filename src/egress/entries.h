// Entries of a policy, and an index over many of them: a look-up costs the same among ten as among
// ten thousand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ip.h"
#include "base/result.h"

namespace cloister::egress {

struct Entry {
    enum class Kind {
        Baseline,  // ALL_TRAFFIC, 0.0.0.0/0, ::/0
        Name,
        Wildcard,  // *.name: one or more labels below it
        Network,
    };
    Kind kind = Kind::Name;
    std::string text;             // canonical
    std::string name;             // of Name and Wildcard (without "*.")
    Cidr network;                 // of Network
    bool v4 = false, v6 = false;  // of Baseline: what it covers

    bool operator==(const Entry&) const = default;
};

inline constexpr std::string_view kAllTraffic = "ALL_TRAFFIC";

// InvalidArgument with the reason for what is neither an address, a network, a name nor a wildcard.
Result<Entry> parse_entry(std::string_view text);
// Whether `name` has one or more labels in front of `parent`.
bool is_below(std::string_view name, std::string_view parent);

class EntryIndex {
  public:
    // Baselines are left out. Equal entries are one.
    void add(const Entry& entry);

    // The entry that a canonical name, or an address, falls under; null if there is none. Among
    // several the closest.
    const Entry* find(std::string_view name) const;
    const Entry* find(const IpAddress& address) const;
    size_t size() const { return size_; }

  private:
    struct TextHash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>{}(text);
        }
    };
    struct NetworkHash {
        size_t operator()(const IpAddress& address) const {
            const std::string_view bytes(reinterpret_cast<const char*>(address.bytes.data()),
                                         address.bytes.size());
            return std::hash<std::string_view>{}(bytes);
        }
    };
    using Names = std::unordered_map<std::string, Entry, TextHash, std::equal_to<>>;
    // The networks of one length.
    struct Level {
        uint8_t prefix = 0;
        std::unordered_map<IpAddress, Entry, NetworkHash> networks;
    };
    std::vector<Level>& levels_for(bool v4) { return v4 ? v4_levels_ : v6_levels_; }

    Names names_, wildcards_;
    std::vector<Level> v4_levels_, v6_levels_;  // longest prefix first
    size_t size_ = 0;
};

}  // namespace cloister::egress
