#include "os/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cloister::os {
namespace {

TEST(SealedFile, HoldsItsBytesAndTakesNoOthers) {
    const auto file = make_sealed_file("test", "for good");
    ASSERT_TRUE(file);
    EXPECT_EQ(*read_all(*file, 100), "for good");
    EXPECT_FALSE(write_all(*file, "x"));
    EXPECT_NE(::ftruncate(file->get(), 0), 0);
    const auto again = open_file("/proc/self/fd/" + std::to_string(file->get()), O_RDWR);
    ASSERT_TRUE(again);
    EXPECT_FALSE(write_all(*again, "x"));
}

TEST(SealedFile, CanBeReadTwiceFromTheStart) {
    const auto file = make_sealed_file("test", "twice");
    ASSERT_TRUE(file);
    EXPECT_EQ(*read_all(*file, 100), "twice");
    const auto again = reopen_for_reading(*file);
    ASSERT_TRUE(again);
    EXPECT_EQ(*read_all(*again, 100), "twice");
}

}  // namespace
}  // namespace cloister::os
