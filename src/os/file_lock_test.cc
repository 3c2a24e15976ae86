#include "os/file_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace cloister::os {
namespace {

TEST(FileLock, IsHeldOnceAndFreedWithItsDescriptor) {
    const std::string path = "/tmp/cloister-lock-" + std::to_string(::getpid());
    auto held = lock_file(path);
    ASSERT_TRUE(held);
    const auto refused = lock_file(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::FailedPrecondition);
    held->reset();
    EXPECT_TRUE(lock_file(path));
    ::unlink(path.c_str());
}

}  // namespace
}  // namespace cloister::os
