// Real loop devices: needs root, as CI has it.
#include "os/loop_device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace cloister::os {
namespace {

constexpr uint64_t kBytes = 1 << 20;

class LoopDeviceTest : public testing::Test {
  protected:
    void SetUp() override {
        const auto file = open_file(image_, O_RDWR | O_CREAT | O_TRUNC, 0600);
        ASSERT_TRUE(file && ::ftruncate(file->get(), kBytes) == 0);
    }
    void TearDown() override { std::filesystem::remove(image_); }
    std::string image_ = "/tmp/cloister-loop-" + std::to_string(::getpid());
};

uint64_t bytes_of(const LoopDevice& device) {
    uint64_t bytes = 0;
    return ::ioctl(device.fd.get(), BLKGETSIZE64, &bytes) == 0 ? bytes : 0;
}

TEST_F(LoopDeviceTest, IsOneForEachFileAndGrowsWithIt) {
    const auto first = attach_loop(image_);
    ASSERT_TRUE(first) << first.error().message;
    const auto second = attach_loop(image_);
    ASSERT_TRUE(second);
    EXPECT_EQ(first->path, second->path);
    EXPECT_EQ(bytes_of(*first), kBytes);
    std::filesystem::resize_file(image_, 2 * kBytes);
    ASSERT_TRUE(update_loop_size(image_));
    EXPECT_EQ(bytes_of(*first), 2 * kBytes);
}

// Its last user goes while the next one comes, as when a killed warden's mounts end: whoever was
// given a device has one that holds the file.
TEST_F(LoopDeviceTest, IsWholeWhenItsLastUserGoesMeanwhile) {
    for (int i = 0; i < 300; ++i) {
        auto leaving = attach_loop(image_);
        ASSERT_TRUE(leaving) << leaving.error().message;
        std::jthread leave([&] { leaving->fd.reset(); });
        const auto coming = attach_loop(image_);
        ASSERT_TRUE(coming) << coming.error().message;
        EXPECT_EQ(bytes_of(*coming), kBytes) << "in round " << i;
    }
}

}  // namespace
}  // namespace cloister::os
