#include "egress/policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/number.h"

namespace cloister::egress {
namespace {

constexpr std::string_view kPort = "port:";

Verdict allowed(Basis basis, std::string rule) {
    return {.allowed = true, .basis = basis, .rule = std::move(rule)};
}
Verdict denied(Basis basis, std::string rule) {
    return {.allowed = false, .basis = basis, .rule = std::move(rule)};
}

Verdict by(bool allow, const Entry& entry, std::string_view list) {
    return {.allowed = allow,
            .basis = entry.kind == Entry::Kind::Network ? Basis::Network : Basis::Name,
            .rule = fmt::format("{} {}", list, entry.text)};
}

// Of its name first, then of its address.
const Entry* find_target(const EntryIndex& index, const Target& target) {
    const Entry* found = target.name.empty() ? nullptr : index.find(target.name);
    return found != nullptr ? found : index.find(target.address);
}

}  // namespace

std::string_view to_string(Mode mode) {
    switch (mode) {
        case Mode::Filtered:
            return "filtered";
        case Mode::Open:
            return "open";
        case Mode::Disabled:
            break;
    }
    return "disabled";
}

std::optional<Mode> mode_from(std::string_view word) {
    for (const Mode mode : {Mode::Disabled, Mode::Filtered, Mode::Open}) {
        if (word == to_string(mode)) return mode;
    }
    return std::nullopt;
}

// --- Platform ---

Result<Platform> Platform::create(const std::vector<std::string>& allow,
                                  const std::vector<IpAddress>& host_addresses) {
    Platform out;
    for (const limits::DeniedNetwork& row : limits::kPlatformDeniedNetworks) {
        out.denied_networks_.push_back(cidr(row.network));
    }
    for (const IpAddress& address : host_addresses) {
        out.denied_networks_.push_back({.network = address});
    }
    for (const Cidr& network : out.denied_networks_) {
        out.denied_.add({.kind = Entry::Kind::Network, .text = network.text(), .network = network});
    }
    for (const std::string_view name : limits::kPlatformDeniedNames) {
        out.denied_.add(TRY(parse_entry(name)));
    }
    for (const std::string& text : allow) {
        if (text.starts_with(kPort)) {
            const auto port = whole_number<uint16_t>(std::string_view(text).substr(kPort.size()));
            if (!port)
                return make_error(ErrorKind::InvalidArgument,
                                  fmt::format("`{}` in {} is no port", text, kPlatformAllow));
            out.open_ports_.push_back(*port);
            continue;
        }
        auto entry = parse_entry(text);
        if (!entry)
            return std::move(entry).error().within(fmt::format("`{}` in {}", text, kPlatformAllow));
        if (entry->kind == Entry::Kind::Baseline)
            return make_error(ErrorKind::InvalidArgument,
                              fmt::format("`{}` in {} would open everything: name what it is for",
                                          text, kPlatformAllow));
        if (entry->kind == Entry::Kind::Network) out.open_networks_.push_back(entry->network);
        out.open_.add(*entry);
    }
    return out;
}

std::string Platform::denies_plain(const IpAddress& address) const {
    if (open_.find(address) != nullptr) return {};
    const Entry* found = denied_.find(address);
    return found == nullptr ? std::string() : found->text;
}

std::string Platform::denies(const IpAddress& address) const {
    if (std::string found = denies_plain(address); !found.empty()) return found;
    if (open_.find(address) != nullptr) return {};
    for (const IpAddress& inner : embedded_v4(address)) {
        if (std::string found = denies_plain(inner); !found.empty()) return found;
    }
    return {};
}

std::string Platform::denies_name(std::string_view name) const {
    if (open_.find(name) != nullptr) return {};
    const Entry* found = denied_.find(name);
    return found == nullptr ? std::string() : found->text;
}

std::string Platform::denies_port(uint16_t port) const {
    if (std::ranges::find(limits::kPlatformDeniedPorts, port) ==
            limits::kPlatformDeniedPorts.end() ||
        std::ranges::find(open_ports_, port) != open_ports_.end()) {
        return {};
    }
    return fmt::format("{}{}", kPort, port);
}

std::string Platform::overlaps(const Entry& entry) const {
    if (entry.kind == Entry::Kind::Name) return denies_name(entry.name);
    if (entry.kind == Entry::Kind::Wildcard) {
        // Names below it are judged one by one; one that is wholly denied can never match.
        return denies_name("x." + entry.name);
    }
    if (entry.kind != Entry::Kind::Network) return {};
    const auto opened = [&](const Cidr& network) {
        return std::ranges::any_of(open_networks_, [&](const Cidr& open) {
            return open.prefix <= network.prefix && open.overlaps(network);
        });
    };
    if (opened(entry.network)) return {};
    for (const Cidr& network : denied_networks_) {
        if (!network.overlaps(entry.network)) continue;
        const Cidr& common = network.prefix > entry.network.prefix ? network : entry.network;
        if (!opened(common)) return network.text();
    }
    return entry.network.prefix == 128 ? denies(entry.network.network) : std::string();
}

// --- Policy ---

Result<void> Policy::add(const std::string& text, const std::string& field, EntryIndex& index,
                         Baseline& baseline, std::vector<std::string>& canonical) {
    auto entry = parse_entry(text);
    if (!entry) {
        return invalid_field(field,
                             fmt::format("`{}` in `{}`: {}", text, field, entry.error().message));
    }
    canonical.push_back(entry->text);
    baseline.v4 = baseline.v4 || entry->v4;
    baseline.v6 = baseline.v6 || entry->v6;
    index.add(*entry);
    const std::string overlap = &index == &allow_ ? platform_->overlaps(*entry) : std::string();
    if (overlap.empty()) return {};
    return invalid_field(
        field, fmt::format("`{}` in `{}` reaches into `{}`, which the platform denies to every "
                           "sandbox: only the operator opens it, with `{}` in cloister.toml",
                           text, field, overlap, kPlatformAllow));
}

Result<Policy> Policy::create(const PolicySpec& spec, std::shared_ptr<const Platform> platform) {
    Policy policy;
    policy.platform_ = std::move(platform);
    policy.spec_.mode = spec.mode;
    const bool lists = !spec.allow_out.empty() || !spec.deny_out.empty();
    if (spec.mode != Mode::Filtered && lists) {
        return invalid_field(spec.allow_out.empty() ? "deny_out" : "allow_out",
                             fmt::format("`allow_out` and `deny_out` belong to `filtered`, not "
                                         "to `{}`",
                                         to_string(spec.mode)));
    }
    for (const std::string& text : spec.allow_out) {
        TRY_OK(policy.add(text, "allow_out", policy.allow_, policy.allow_baseline_,
                          policy.spec_.allow_out));
    }
    for (const std::string& text : spec.deny_out) {
        TRY_OK(policy.add(text, "deny_out", policy.deny_, policy.deny_baseline_,
                          policy.spec_.deny_out));
    }
    return policy;
}

Verdict Policy::judge_baseline(bool in_allow, bool in_deny) const {
    if (in_allow) return allowed(Basis::Baseline, "allow_out ALL_TRAFFIC");
    if (in_deny) return denied(Basis::Baseline, "deny_out ALL_TRAFFIC");
    // A baseline for the other family alone opens nothing.
    const bool only_exceptions = allow_.size() == 0 && !allow_baseline_.given() &&
                                 deny_.size() != 0 && !deny_baseline_.given();
    return only_exceptions ? allowed(Basis::Baseline, "not in deny_out")
                           : denied(Basis::Baseline, "not in allow_out");
}

std::string Policy::denied_by_platform(const Target& target) const {
    std::string found = target.name.empty() ? "" : platform_->denies_name(target.name);
    if (found.empty()) found = platform_->denies(target.address);
    if (found.empty()) found = platform_->denies_port(target.port);
    return found;
}

Verdict Policy::judge(const Target& target) const {
    if (spec_.mode == Mode::Disabled) return denied(Basis::Mode, "disabled");
    const std::string platform = denied_by_platform(target);
    if (!platform.empty()) return denied(Basis::Platform, "platform " + platform);
    if (spec_.mode == Mode::Open) return allowed(Basis::Mode, "open");
    if (const Entry* entry = find_target(allow_, target)) return by(true, *entry, "allow_out");
    if (const Entry* entry = find_target(deny_, target)) return by(false, *entry, "deny_out");
    for (const IpAddress& inner : embedded_v4(target.address)) {
        if (const Entry* entry = deny_.find(inner)) return by(false, *entry, "deny_out");
    }
    return judge_baseline(allow_baseline_.covers(target.address),
                          deny_baseline_.covers(target.address));
}

Verdict Policy::judge_name(std::string_view name) const {
    if (spec_.mode == Mode::Disabled) return denied(Basis::Mode, "disabled");
    const std::string platform = platform_->denies_name(name);
    if (!platform.empty()) return denied(Basis::Platform, "platform " + platform);
    if (spec_.mode == Mode::Open) return allowed(Basis::Mode, "open");
    if (const Entry* entry = allow_.find(name)) return by(true, *entry, "allow_out");
    if (const Entry* entry = deny_.find(name)) return by(false, *entry, "deny_out");
    return judge_baseline(allow_baseline_.given(), deny_baseline_.given());
}

// --- PolicyStack ---

Mode PolicyStack::mode() const {
    Mode strictest = policies_.empty() ? Mode::Disabled : Mode::Open;
    for (const auto& policy : policies_) strictest = std::min(strictest, policy->mode());
    return strictest;
}

Verdict PolicyStack::judge(const Target& target) const {
    Verdict verdict = denied(Basis::Mode, "disabled");
    for (const auto& policy : policies_) {
        Verdict one = policy->judge(target);
        if (!one.allowed) return one;
        const Basis basis = std::max(verdict.basis, one.basis);
        verdict = std::move(one);
        verdict.basis = basis;
    }
    return verdict;
}

Verdict PolicyStack::judge_name(std::string_view name) const {
    Verdict verdict = denied(Basis::Mode, "disabled");
    for (const auto& policy : policies_) {
        Verdict one = policy->judge_name(name);
        if (!one.allowed) return one;
        verdict = std::move(one);
    }
    return verdict;
}

}  // namespace cloister::egress
