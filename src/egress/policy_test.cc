#include "egress/policy.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

namespace cloister::egress {
namespace {

std::shared_ptr<const Platform> platform(const std::vector<std::string>& allow = {}) {
    return std::make_shared<const Platform>(Platform::create(allow).value());
}

PolicySpec filtered(std::vector<std::string> allow, std::vector<std::string> deny) {
    return {.mode = Mode::Filtered, .allow_out = std::move(allow), .deny_out = std::move(deny)};
}

Policy make(const PolicySpec& spec) {
    auto policy = Policy::create(spec, platform());
    EXPECT_TRUE(policy) << (policy ? "" : policy.error().message);
    return std::move(*policy);
}

Verdict judge(const Policy& policy, std::string_view name, std::string_view address,
              uint16_t port = 443) {
    return policy.judge({.name = name, .address = *parse_address(address), .port = port});
}

// --- The five steps once more, as a list of strings that is walked through ---

bool naive_matches(const std::string& entry, const std::string& name, const std::string& address) {
    if (entry == "ALL_TRAFFIC" || entry == "0.0.0.0/0" || entry == "::/0") return false;
    if (entry.starts_with("*.")) {
        const std::string tail = entry.substr(1);
        return name.size() > tail.size() && name.ends_with(tail);
    }
    if (const auto network = parse_cidr(entry)) return network->holds(*parse_address(address));
    return entry == name;
}

bool naive_allowed(const PolicySpec& spec, const std::string& name, const std::string& address) {
    const bool v4 = parse_address(address)->is_v4();
    const auto any = [&](const std::vector<std::string>& list) {
        for (const auto& entry : list) {
            if (naive_matches(entry, name, address)) return true;
        }
        return false;
    };
    const auto baseline = [&](const std::vector<std::string>& list) {
        for (const auto& entry : list) {
            if (entry == "ALL_TRAFFIC" || entry == (v4 ? "0.0.0.0/0" : "::/0")) return true;
        }
        return false;
    };
    const auto other_baseline = [&](const std::vector<std::string>& list) {
        for (const auto& entry : list) {
            if (entry == (v4 ? "::/0" : "0.0.0.0/0")) return true;
        }
        return false;
    };
    if (any(spec.allow_out)) return true;
    if (any(spec.deny_out)) return false;
    if (baseline(spec.allow_out)) return true;
    if (baseline(spec.deny_out)) return false;
    if (!spec.allow_out.empty()) return false;
    return !spec.deny_out.empty() && !other_baseline(spec.deny_out);
}

constexpr std::array<const char*, 7> kUniverse = {"a.example",     "*.example",   "203.0.113.0/24",
                                                  "2001:db8::/32", "ALL_TRAFFIC", "0.0.0.0/0",
                                                  "::/0"};

std::vector<std::string> subset(unsigned bits) {
    std::vector<std::string> out;
    for (size_t i = 0; i < kUniverse.size(); ++i) {
        if ((bits >> i & 1) != 0) out.emplace_back(kUniverse[i]);
    }
    return out;
}

TEST(Policy, AgreesWithANaiveReaderOnEveryPairOfLists) {
    const auto shared = platform();
    const std::array<std::string, 5> names = {"", "a.example", "x.y.example", "b.test", "example"};
    const std::array<std::string, 4> addresses = {"203.0.113.9", "198.51.100.1", "2001:db8::7",
                                                  "2a00::1"};
    size_t judged = 0;
    for (unsigned allow = 0; allow < 1u << kUniverse.size(); ++allow) {
        for (unsigned deny = 0; deny < 1u << kUniverse.size(); ++deny) {
            const PolicySpec spec = filtered(subset(allow), subset(deny));
            const Policy policy = Policy::create(spec, shared).value();
            for (const auto& name : names) {
                for (const auto& address : addresses) {
                    const bool wanted = naive_allowed(spec, name, address);
                    ASSERT_EQ(judge(policy, name, address).allowed, wanted)
                        << name << " " << address << " allow " << allow << " deny " << deny;
                    // A name that may be reached at some address may be asked for.
                    if (wanted && !name.empty() &&
                        !cidr("203.0.113.0/24").holds(*parse_address(address)) &&
                        !cidr("2001:db8::/32").holds(*parse_address(address)))
                        ASSERT_TRUE(policy.judge_name(name).allowed) << name << allow << deny;
                    ++judged;
                }
            }
        }
    }
    EXPECT_EQ(judged, 16'384u * 20);
}

TEST(Policy, TheTableOfTheDocument) {
    const Policy only = make(filtered({"a.example"}, {}));
    EXPECT_TRUE(judge(only, "a.example", "203.0.113.1").allowed);
    EXPECT_FALSE(judge(only, "b.example", "203.0.113.1").allowed);
    EXPECT_FALSE(judge(only, "", "203.0.113.1").allowed);
    const Policy all_but = make(filtered({"all_traffic"}, {"b.example"}));
    EXPECT_TRUE(judge(all_but, "a.example", "203.0.113.1").allowed);
    EXPECT_FALSE(judge(all_but, "b.example", "203.0.113.1").allowed);
    EXPECT_TRUE(judge(all_but, "", "2a00::1").allowed);
    const Policy nothing = make(filtered({}, {}));
    EXPECT_FALSE(judge(nothing, "a.example", "203.0.113.1").allowed);
    const Policy exceptions = make(filtered({}, {"b.example"}));
    EXPECT_TRUE(judge(exceptions, "a.example", "203.0.113.1").allowed);
    EXPECT_FALSE(judge(exceptions, "b.example", "203.0.113.1").allowed);
    const Policy both = make(filtered({"example.com", "203.0.113.4"}, {"ALL_TRAFFIC"}));
    EXPECT_TRUE(judge(both, "example.com", "198.51.100.1").allowed);
    EXPECT_TRUE(judge(both, "", "203.0.113.4").allowed);
    EXPECT_FALSE(judge(both, "", "203.0.113.5").allowed);
    EXPECT_FALSE(judge(both, "", "2a00::1").allowed);
}

TEST(Policy, WildcardsAreBelowTheirNameOnly) {
    const Policy policy = make(filtered({"*.a.com"}, {}));
    const auto allowed = [&](std::string_view name) {
        return judge(policy, name, "203.0.113.1").allowed;
    };
    EXPECT_TRUE(allowed("b.a.com"));
    EXPECT_TRUE(allowed("c.b.a.com"));
    EXPECT_FALSE(allowed("a.com"));
    EXPECT_FALSE(allowed("xa.com"));
    EXPECT_FALSE(allowed(".a.com"));
    EXPECT_FALSE(allowed("a.com.evil"));
    EXPECT_FALSE(allowed("b.a.com.evil"));
    EXPECT_EQ(make(filtered({"*.A.COM."}, {})).spec().allow_out,
              std::vector<std::string>{"*.a.com"});
}

TEST(Policy, ThePlatformStandsAboveEverything) {
    for (const Mode mode : {Mode::Open, Mode::Filtered}) {
        PolicySpec spec{.mode = mode};
        if (mode == Mode::Filtered) spec.allow_out = {"ALL_TRAFFIC"};
        const Policy policy = make(spec);
        for (const char* address :
             {"169.254.169.254", "fd00:ec2::254", "100.100.100.200", "127.0.0.1", "::1", "10.1.2.3",
              "192.168.0.1", "172.31.0.1", "0.0.0.0", "64:ff9b::a9fe:a9fe",
              "2002:7f00:1::", "::ffff:10.0.0.1", "224.0.0.1", "255.255.255.255", "fe80::1"}) {
            const Verdict verdict = judge(policy, "", address);
            EXPECT_FALSE(verdict.allowed) << address;
            EXPECT_TRUE(verdict.rule.starts_with("platform ")) << verdict.rule;
        }
        EXPECT_FALSE(judge(policy, "metadata.google.internal", "203.0.113.1").allowed);
        EXPECT_FALSE(judge(policy, "", "203.0.113.1", 25).allowed);
        EXPECT_TRUE(judge(policy, "", "203.0.113.1", 26).allowed);
        EXPECT_FALSE(policy.judge_name("x.localhost").allowed);
    }
}

TEST(Policy, TheHostsOwnAddressesBelongToThePlatform) {
    const auto shared = std::make_shared<const Platform>(
        Platform::create({}, {*parse_address("203.0.113.1")}).value());
    const Policy policy = Policy::create(filtered({"ALL_TRAFFIC"}, {}), shared).value();
    EXPECT_FALSE(judge(policy, "", "203.0.113.1").allowed);
    EXPECT_TRUE(judge(policy, "", "203.0.113.2").allowed);
    EXPECT_FALSE(Policy::create(filtered({"203.0.113.0/24"}, {}), shared));
}

TEST(Policy, AnAllowEntryInThePlatformSetNamesTheWayOut) {
    for (const char* entry : {"10.0.0.0/8", "10.1.2.3", "0.0.0.0/1", "169.254.169.254",
                              "2852039166", "metadata.google.internal", "*.localhost", "localhost",
                              "fd00::/8", "64:ff9b::a9fe:a9fe", "::1"}) {
        const auto refused = Policy::create(filtered({"a.example", entry}, {}), platform());
        ASSERT_FALSE(refused) << entry;
        EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
        EXPECT_EQ(refused.error().field, "allow_out");
        EXPECT_NE(refused.error().message.find(entry), std::string::npos);
        EXPECT_NE(refused.error().message.find("platform_allow"), std::string::npos);
        EXPECT_TRUE(Policy::create(filtered({}, {entry}), platform())) << entry;
    }
    EXPECT_TRUE(Policy::create(filtered({"ALL_TRAFFIC", "0.0.0.0/0", "::/0"}, {}), platform()));
}

TEST(Policy, TheOperatorOpens) {
    const auto opened = platform({"10.1.0.0/16", "port:25", "metadata.google.internal"});
    const Policy policy =
        Policy::create(filtered({"10.1.2.0/24", "ALL_TRAFFIC"}, {}), opened).value();
    EXPECT_TRUE(judge(policy, "", "10.1.2.3").allowed);
    EXPECT_TRUE(judge(policy, "", "10.1.9.9").allowed);
    EXPECT_FALSE(judge(policy, "", "10.2.0.0").allowed);
    EXPECT_TRUE(judge(policy, "metadata.google.internal", "203.0.113.1", 25).allowed);
    EXPECT_FALSE(Policy::create(filtered({"10.0.0.0/8"}, {}), opened));
    EXPECT_FALSE(Platform::create({"0.0.0.0/0"}));
    EXPECT_FALSE(Platform::create({"port:x"}));
    EXPECT_FALSE(Platform::create({"a b"}));
}

TEST(Policy, RefusesEntriesThatCannotBeRead) {
    using namespace std::literals;
    for (const std::string& entry :
         {""s, "a b"s, "a\0b"s, "*"s, "*."s, "a.*.b"s, "*.*.b"s, "http://a"s, "a:80"s,
          "10.0.0.1/8"s, "b\xc3\xbc.de"s, "a/24"s, std::string(300, 'a')}) {
        const auto refused = Policy::create(filtered({}, {entry}), platform());
        ASSERT_FALSE(refused) << entry;
        EXPECT_EQ(refused.error().field, "deny_out");
    }
    EXPECT_FALSE(Policy::create({.mode = Mode::Open, .allow_out = {"a"}}, platform()));
    EXPECT_FALSE(Policy::create({.mode = Mode::Disabled, .deny_out = {"a"}}, platform()));
}

TEST(Policy, DenyEntriesReachIntoWrappers) {
    const Policy policy = make(filtered({"ALL_TRAFFIC"}, {"203.0.113.0/24"}));
    EXPECT_FALSE(judge(policy, "", "64:ff9b::cb00:7101").allowed);
    EXPECT_TRUE(judge(policy, "", "64:ff9b::c633:6401").allowed);
}

TEST(PolicyStack, CanOnlyNarrow) {
    const auto wide = std::make_shared<const Policy>(make({.mode = Mode::Open}));
    const auto narrow = std::make_shared<const Policy>(make(filtered({"a.example"}, {})));
    const auto none = std::make_shared<const Policy>(make({}));
    const Target a{.name = "a.example", .address = *parse_address("203.0.113.1"), .port = 443};
    const Target b{.name = "b.example", .address = *parse_address("203.0.113.1"), .port = 443};
    EXPECT_TRUE(PolicyStack({wide}).judge(b).allowed);
    EXPECT_TRUE(PolicyStack({wide, narrow}).judge(a).allowed);
    EXPECT_FALSE(PolicyStack({wide, narrow}).judge(b).allowed);
    EXPECT_FALSE(PolicyStack({narrow, wide}).judge(b).allowed);
    EXPECT_FALSE(PolicyStack({wide, none}).judge(a).allowed);
    EXPECT_FALSE(PolicyStack().judge(a).allowed);
    EXPECT_EQ(PolicyStack({wide, narrow}).mode(), Mode::Filtered);
    EXPECT_EQ(PolicyStack({wide, none}).mode(), Mode::Disabled);
}

// The cost of a look-up does not follow the number of entries. Wide margins: the point is that it
// is not a thousand times.
TEST(Policy, TenThousandEntriesCostWhatTenDo) {
    const auto spent = [](int entries) {
        PolicySpec spec = filtered({}, {});
        for (int i = 0; i < entries; ++i) {
            spec.allow_out.push_back("n" + std::to_string(i) + ".example");
            spec.deny_out.push_back("203." + std::to_string(i / 250) + "." +
                                    std::to_string(i % 250) + ".0/24");
        }
        const Policy policy = make(spec);
        const auto begun = std::chrono::steady_clock::now();
        for (int i = 0; i < 20'000; ++i) {
            EXPECT_FALSE(judge(policy, "x.y.z", "203.0.9.1").allowed);
        }
        return (std::chrono::steady_clock::now() - begun).count();
    };
    const auto few = spent(10);
    EXPECT_LT(spent(10'000), 10 * few);
}

}  // namespace
}  // namespace cloister::egress
