#include "programs/agent/stdin_fifo.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/ids.h"
#include "base/limits.h"

namespace cloister::agent {
namespace {

namespace fs = std::filesystem;

class StdinFifoTest : public testing::Test {
  protected:
    void TearDown() override { fs::remove_all(directory_); }
    StdinFifo make() { return StdinFifo::create(directory_, "run").value(); }

    const std::string directory_ = fs::temp_directory_path() / ("fifo-" + new_id());
};

TEST_F(StdinFifoTest, IsTheUsersToReadAndGoesWithItsOwner) {
    std::string path;
    {
        const StdinFifo fifo = make();
        path = fifo.path();
        struct stat found{};
        ASSERT_EQ(::stat(path.c_str(), &found), 0);
        EXPECT_TRUE(S_ISFIFO(found.st_mode));
        EXPECT_EQ(found.st_mode & 0777, 0400U);
        EXPECT_EQ(found.st_uid, limits::kUserId);
    }
    EXPECT_FALSE(fs::exists(path));
}

TEST_F(StdinFifoTest, IsOpenedEvenWhenItsWriterHasFinished) {
    StdinFifo fifo = make();
    {
        const os::Fd writer = fifo.writer().value();
        ASSERT_TRUE(os::write_all(writer, "all of it"));
    }
    const os::Fd reader = os::open_file(fifo.path(), O_RDONLY).value();
    fifo.let_go();
    EXPECT_EQ(os::read_all(reader, 100).value(), "all of it");
}

TEST_F(StdinFifoTest, AWriterNoticesThatTheReaderIsGone) {
    StdinFifo fifo = make();
    const os::Fd writer = fifo.writer().value();
    os::Fd reader = os::open_file(fifo.path(), O_RDONLY).value();
    fifo.let_go();
    reader.reset();
    ::signal(SIGPIPE, SIG_IGN);
    EXPECT_FALSE(os::write_all(writer, "x"));
}

TEST_F(StdinFifoTest, AFileThatIsThereAlreadyIsLeftAlone) {
    fs::create_directories(directory_);
    const std::string path = directory_ + "/run";
    ASSERT_TRUE(os::write_file_atomically(path, "mine", 0600));
    EXPECT_FALSE(StdinFifo::create(directory_, "run"));
    EXPECT_TRUE(fs::exists(path));
}

}  // namespace
}  // namespace cloister::agent
