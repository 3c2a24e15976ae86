// A policy, one entry a line, and a target: the index must say what a walk over the entries says.
//     +ENTRY (allow_out)  -ENTRY (deny_out)  @NAME  #ADDRESS
#include "egress/host_name.h"
#include "egress/policy.h"
#include "fuzz.h"

using namespace cloister;
using namespace cloister::egress;

namespace {

struct Lists {
    std::vector<Entry> entries;
    bool v4 = false, v6 = false;

    bool match(std::string_view name, const IpAddress& address) const {
        for (const Entry& entry : entries) {
            if (entry.kind == Entry::Kind::Network && entry.network.holds(address)) return true;
            if (entry.kind == Entry::Kind::Name && entry.name == name) return true;
            if (entry.kind == Entry::Kind::Wildcard && is_below(name, entry.name)) return true;
        }
        return false;
    }
};

void take(Lists& lists, const Entry& entry) {
    lists.v4 = lists.v4 || entry.v4;
    lists.v6 = lists.v6 || entry.v6;
    if (entry.kind != Entry::Kind::Baseline) lists.entries.push_back(entry);
}

bool wanted(const Lists& allow, const Lists& deny, std::string_view name,
            const IpAddress& address) {
    if (allow.match(name, address)) return true;
    if (deny.match(name, address)) return false;
    for (const IpAddress& inner : embedded_v4(address)) {
        if (deny.match("", inner)) return false;
    }
    const bool v4 = address.is_v4();
    if (v4 ? allow.v4 : allow.v6) return true;
    if (v4 ? deny.v4 : deny.v6) return false;
    if (!allow.entries.empty() || allow.v4 || allow.v6) return false;
    return !deny.entries.empty() && !deny.v4 && !deny.v6;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const auto platform = std::make_shared<const Platform>(Platform::create({}).value());
    PolicySpec spec{.mode = Mode::Filtered};
    Lists allow, deny;
    std::string name;
    IpAddress address = *parse_address("203.0.113.1");
    for (std::string_view rest = fuzz::text_of(data, size); !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (line.empty()) continue;
        const std::string text(line.substr(1));
        const auto entry = parse_entry(text);
        if (entry) EXPECT(parse_entry(entry->text).value() == *entry);
        if (line[0] == '+' && entry) {
            spec.allow_out.push_back(text);
            take(allow, *entry);
        } else if (line[0] == '-' && entry) {
            spec.deny_out.push_back(text);
            take(deny, *entry);
        } else if (line[0] == '@') {
            name = canonical_name(text).value_or("");
        } else if (line[0] == '#') {
            address = parse_address(text).value_or(address);
        }
    }
    const auto policy = Policy::create(spec, platform);
    if (!policy) return 0;
    const Verdict verdict = policy->judge({.name = name, .address = address, .port = 443});
    const bool free = platform->denies(address).empty() && platform->denies_name(name).empty();
    EXPECT(verdict.allowed == (free && wanted(allow, deny, name, address)));
    return 0;
}
