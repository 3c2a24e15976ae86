#include "programs/egressd/resolver.h"

#include <gtest/gtest.h>

namespace cloister::egressd {
namespace {

TEST(Resolver, ReadsTheServersOfAResolvConf) {
    const auto servers = servers_of(
        "# nameserver 1.1.1.1\nnameserver 203.0.113.53\nsearch a.b\n"
        "nameserver\t2001:db8::53 # here\nnameserver\nnameserverx 9.9.9.9\noptions edns0\n"
        "nameserver 203.0.113.54");
    ASSERT_EQ(servers.size(), 3U);
    EXPECT_EQ(servers[0].text(), "203.0.113.53:53");
    EXPECT_EQ(servers[1].text(), "[2001:db8::53]:53");
    EXPECT_EQ(servers[2].text(), "203.0.113.54:53");
    EXPECT_TRUE(servers_of("").empty());
}

}  // namespace
}  // namespace cloister::egressd
