#include "egress/entries.h"

#include <algorithm>

#include "egress/host_name.h"

namespace cloister::egress {
namespace {

bool equal_without_case(std::string_view a, std::string_view b) {
    const auto upper = [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c & ~0x20) : c;
    };
    return std::ranges::equal(a, b, {}, upper, upper);
}

Entry baseline(std::string_view text, bool v4, bool v6) {
    return {.kind = Entry::Kind::Baseline, .text = std::string(text), .v4 = v4, .v6 = v6};
}

Entry of_network(const Cidr& network) {
    if (network.prefix == 0) return baseline("::/0", false, true);
    if (network.is_v4() && network.prefix == 96) return baseline("0.0.0.0/0", true, false);
    return {.kind = Entry::Kind::Network, .text = network.text(), .network = network};
}

Error not_an_entry(std::string reason) {
    return make_error(ErrorKind::InvalidArgument, std::move(reason));
}

}  // namespace

bool is_below(std::string_view name, std::string_view parent) {
    return name.size() > parent.size() + 1 && name.ends_with(parent) &&
           name[name.size() - parent.size() - 1] == '.';
}

Result<Entry> parse_entry(std::string_view text) {
    if (equal_without_case(text, kAllTraffic)) return baseline(kAllTraffic, true, true);
    if (text.find('/') != std::string_view::npos) {
        const auto network = parse_cidr(text);
        if (!network)
            return not_an_entry(
                "it is no network: write ADDRESS/LENGTH, without bits behind the length");
        return of_network(*network);
    }
    if (text.starts_with("*.")) {
        const std::string name = TRY(canonical_name(text.substr(2)));
        return Entry{.kind = Entry::Kind::Wildcard, .text = "*." + name, .name = name};
    }
    const Host host = TRY(parse_host(text));
    if (const auto* address = std::get_if<IpAddress>(&host))
        return of_network({.network = *address});
    const auto& name = std::get<std::string>(host);
    return Entry{.kind = Entry::Kind::Name, .text = name, .name = name};
}

void EntryIndex::add(const Entry& entry) {
    bool added = false;
    if (entry.kind == Entry::Kind::Name) added = names_.emplace(entry.name, entry).second;
    if (entry.kind == Entry::Kind::Wildcard) added = wildcards_.emplace(entry.name, entry).second;
    if (entry.kind == Entry::Kind::Network) {
        auto& levels = levels_for(entry.network.is_v4());
        auto level = std::ranges::find(levels, entry.network.prefix, &Level::prefix);
        if (level == levels.end()) {
            levels.push_back({.prefix = entry.network.prefix});
            std::ranges::sort(levels, std::greater(), &Level::prefix);
            level = std::ranges::find(levels, entry.network.prefix, &Level::prefix);
        }
        added = level->networks.emplace(entry.network.network, entry).second;
    }
    if (added) ++size_;
}

const Entry* EntryIndex::find(std::string_view name) const {
    const auto exact = names_.find(name);
    if (exact != names_.end()) return &exact->second;
    if (wildcards_.empty() || name.starts_with('.')) return nullptr;
    for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
        name.remove_prefix(dot + 1);
        const auto found = wildcards_.find(name);
        if (found != wildcards_.end()) return &found->second;
    }
    return nullptr;
}

const Entry* EntryIndex::find(const IpAddress& address) const {
    for (const Level& level : address.is_v4() ? v4_levels_ : v6_levels_) {
        const auto found = level.networks.find(masked(address, level.prefix));
        if (found != level.networks.end()) return &found->second;
    }
    return nullptr;
}

}  // namespace cloister::egress
