// The network policy of a sandbox: who may be reached. Pure: names and addresses in, a verdict out.
// docs/network-policy.md has the table.
//
//     PolicySpec spec{.mode = Mode::Filtered, .allow_out = {"api.example.org"}};
//     Policy policy = TRY(Policy::create(spec, platform));      // names the entry at fault
//     Verdict verdict = policy.judge({.name = "api.example.org", .address = address, .port = 443});
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip.h"
#include "base/limits.h"
#include "base/result.h"
#include "egress/entries.h"

namespace cloister::egress {

enum class Mode : uint8_t { Disabled, Filtered, Open };
std::string_view to_string(Mode mode);
std::optional<Mode> mode_from(std::string_view word);

struct PolicySpec {
    Mode mode = Mode::Disabled;
    std::vector<std::string> allow_out, deny_out;  // of Filtered

    bool operator==(const PolicySpec&) const = default;
};

inline constexpr size_t kEntriesMax = limits::kNetworkEntriesMax;            // of a list
inline constexpr size_t kEntriesBytesMax = limits::kNetworkEntriesBytesMax;  // of a list together
// What opens an entry of the platform deny set, as errors name it.
inline constexpr std::string_view kPlatformAllow = "platform_allow";

// The platform deny set (limits.h), less what the operator opened, and with the addresses
// that the host has.
class Platform {
  public:
    // `allow`: addresses, networks, names, and "port:25". InvalidArgument names the entry.
    static Result<Platform> create(const std::vector<std::string>& allow,
                                   const std::vector<IpAddress>& host_addresses = {});

    // Empty if it is not denied, else what denies it.
    std::string denies(const IpAddress& address) const;
    std::string denies_name(std::string_view name) const;
    std::string denies_port(uint16_t port) const;
    // Whether the operator opened it.
    bool opens(const IpAddress& address) const { return open_.find(address) != nullptr; }
    // An entry of a policy that would reach into the set; empty if it does not.
    std::string overlaps(const Entry& entry) const;

  private:
    std::string denies_plain(const IpAddress& address) const;
    EntryIndex denied_, open_;
    std::vector<Cidr> denied_networks_, open_networks_;
    std::vector<uint16_t> open_ports_;
};

// What is judged: an address, and the name that it was asked for by, if it is known. Names are
// canonical.
struct Target {
    std::string_view name;  // empty: none
    IpAddress address;
    uint16_t port = 0;
};

// What decided, the weaker bond to an address last: a name may lead to any address.
enum class Basis : uint8_t { Mode, Network, Baseline, Name, Platform };

struct Verdict {
    bool allowed = false;
    Basis basis = Basis::Mode;
    std::string rule;  // "allow_out api.example.org", "platform 10.0.0.0/8", "disabled"
};

class Policy {
  public:
    // InvalidArgument with field and entry for one that cannot be read, or that reaches into the
    // platform deny set.
    static Result<Policy> create(const PolicySpec& spec, std::shared_ptr<const Platform> platform);

    const PolicySpec& spec() const { return spec_; }  // its entries in canonical form
    Mode mode() const { return spec_.mode; }
    Verdict judge(const Target& target) const;
    // Whether the name alone may be asked for: some address of it could be allowed.
    Verdict judge_name(std::string_view name) const;

  private:
    struct Baseline {
        bool v4 = false, v6 = false;
        bool given() const { return v4 || v6; }
        bool covers(const IpAddress& address) const { return address.is_v4() ? v4 : v6; }
    };
    Result<void> add(const std::string& text, const std::string& field, EntryIndex& index,
                     Baseline& baseline, std::vector<std::string>& canonical);
    Verdict judge_baseline(bool in_allow, bool in_deny) const;
    std::string denied_by_platform(const Target& target) const;

    PolicySpec spec_;
    std::shared_ptr<const Platform> platform_;
    EntryIndex allow_, deny_;
    Baseline allow_baseline_, deny_baseline_;
};

// Several policies at once: what one of them denies is denied. A run's policy can only narrow that
// of its sandbox.
class PolicyStack {
  public:
    PolicyStack() = default;
    explicit PolicyStack(std::vector<std::shared_ptr<const Policy>> policies)
        : policies_(std::move(policies)) {}

    bool empty() const { return policies_.empty(); }
    // The strictest of them; Disabled for none.
    Mode mode() const;
    Verdict judge(const Target& target) const;
    Verdict judge_name(std::string_view name) const;

  private:
    std::vector<std::shared_ptr<const Policy>> policies_;
};

}  // namespace cloister::egress
