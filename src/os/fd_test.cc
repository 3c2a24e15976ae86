#include "os/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace cloister::os {
namespace {

class FdTest : public testing::Test {
  protected:
    void SetUp() override {
        char pattern[] = "/tmp/fdtest-XXXXXX";
        directory_ = ::mkdtemp(pattern);
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }
    std::string path(const std::string& name) const { return directory_ + "/" + name; }

    std::string directory_;
};

bool is_open(int number) {
    return ::fcntl(number, F_GETFD) >= 0;
}

TEST_F(FdTest, ClosesItsDescriptorOnce) {
    Pipe pipe = make_pipe().value();
    const int number = pipe.read.get();
    Fd moved = std::move(pipe.read);
    EXPECT_TRUE(is_open(number));
    EXPECT_FALSE(pipe.read.open());
    moved.reset();
    EXPECT_FALSE(is_open(number));
}

TEST_F(FdTest, EveryDescriptorIsCloseOnExec) {
    const Pipe pipe = make_pipe().value();
    const Fd copy = pipe.read.duplicate().value();
    const Fd file = open_file(path("f"), O_RDWR | O_CREAT, 0600).value();
    for (int number : {pipe.read.get(), pipe.write.get(), copy.get(), file.get()}) {
        EXPECT_EQ(::fcntl(number, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
}

TEST_F(FdTest, ReadsNoMoreThanItMay) {
    ASSERT_TRUE(write_file_atomically(path("f"), std::string(100, 'x'), 0640));
    EXPECT_EQ(read_file(path("f"), 100).value().size(), 100U);
    EXPECT_EQ(read_file(path("f"), 99).error().kind, ErrorKind::TooLarge);
    EXPECT_EQ(read_file(path("absent"), 99).error().os_error, ENOENT);
}

TEST_F(FdTest, AtomicWritesReplaceTheWholeFileAndKeepTheMode) {
    ASSERT_TRUE(write_file_atomically(path("f"), "a longer first text", 0600));
    ASSERT_TRUE(write_file_atomically(path("f"), "second", 0640));
    EXPECT_EQ(read_file(path("f"), 100).value(), "second");
    EXPECT_EQ(std::filesystem::status(path("f")).permissions(), std::filesystem::perms(0640));
    EXPECT_FALSE(std::filesystem::exists(path("f.new")));
}

TEST_F(FdTest, BlockingCanBeSwitched) {
    const Pipe pipe = make_pipe(Blocking::No).value();
    EXPECT_NE(::fcntl(pipe.read.get(), F_GETFL) & O_NONBLOCK, 0);
    ASSERT_TRUE(set_blocking(pipe.read, Blocking::Yes));
    EXPECT_EQ(::fcntl(pipe.read.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace cloister::os
