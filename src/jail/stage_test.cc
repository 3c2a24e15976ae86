#include "jail/stage.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "os/fd.h"

namespace cloister::jail {
namespace {

TEST(ReadyPipe, OneByteMeansReady) {
    const auto pipe = os::make_pipe();
    ASSERT_TRUE(pipe);
    ASSERT_TRUE(os::write_all(pipe->write, "R"));
    EXPECT_TRUE(read_ready(pipe->read.get()));
}

TEST(ReadyPipe, ItsEndMeansThatNobodyIsLeftToBeReady) {
    auto pipe = os::make_pipe();
    ASSERT_TRUE(pipe);
    pipe->write.reset();
    const auto ready = read_ready(pipe->read.get());
    ASSERT_FALSE(ready);
    EXPECT_EQ(ready.error().kind, ErrorKind::Internal);
}

TEST(ReadyPipe, AFailedStepNamesItsStageAndErrno) {
    const auto pipe = os::make_pipe();
    ASSERT_TRUE(pipe);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        Steps steps(pipe->write.get());
        steps.at(Stage::Proc);
        steps.must(::chdir("/"));
        steps.must(::chdir("/no/such/directory"));
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 1) << "the step that failed ends the process";
    const auto ready = read_ready(pipe->read.get());
    ASSERT_FALSE(ready);
    EXPECT_EQ(ready.error().os_error, ENOENT);
    EXPECT_NE(ready.error().message.find(to_string(Stage::Proc)), std::string::npos);
}

}  // namespace
}  // namespace cloister::jail
