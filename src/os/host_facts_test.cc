#include "os/host_facts.h"

#include <gtest/gtest.h>

namespace cloister::os {
namespace {

TEST(HostFacts, CompareKernels) {
    EXPECT_TRUE(kernel_at_least("6.1.0-18-amd64", 6, 1));
    EXPECT_TRUE(kernel_at_least("6.18", 6, 1));
    EXPECT_TRUE(kernel_at_least("7.0.1", 6, 1));
    EXPECT_FALSE(kernel_at_least("5.15.0-1", 6, 1));
    EXPECT_FALSE(kernel_at_least("6.0.9", 6, 1));
    EXPECT_FALSE(kernel_at_least("nonsense", 6, 1));
    EXPECT_FALSE(kernel_at_least("", 6, 1));
}

TEST(HostFacts, AreThoseOfAHostThatRunsTheTests) {
    EXPECT_TRUE(kernel_at_least(kernel_release(), 6, 1));
    EXPECT_TRUE(has_seccomp_filters());
    EXPECT_GT(user_namespaces_max(), 0u);
}

}  // namespace
}  // namespace cloister::os
