#include "programs/agent/zygote_door.h"

#include <gtest/gtest.h>

#include "os/socket.h"

namespace cloister::agent {
namespace {

TEST(ZygoteDoor, KnowsWhatIsReadBeforeAProgramRuns) {
    for (const char* name : {"PYTHONPATH", "LD_PRELOAD", "MPLBACKEND", "OMP_NUM_THREADS",
                             "OPENBLAS_NUM_THREADS", "TZ", "LC_ALL", "LANG", "HOME"}) {
        EXPECT_TRUE(read_at_start(name)) << name;
    }
    for (const char* name : {"GREETING", "PATH", "MYPYTHON", "TZDIR", "OLD_LD_X"}) {
        EXPECT_FALSE(read_at_start(name)) << name;
    }
}

TEST(ZygoteDoor, SuitsNobodyWithoutAZygote) {
    const Birth birth;
    EXPECT_FALSE(ZygoteDoor(birth).suits({}));
}

TEST(ZygoteDoor, RefusesWhoClosesWithoutAWord) {
    auto control = os::make_socket_pair(os::SocketKind::Stream);
    ASSERT_TRUE(control);
    control->theirs.reset();
    const Birth birth;
    EXPECT_EQ(ZygoteDoor(birth).admit(control->ours).error().kind, ErrorKind::Unavailable);
}

TEST(ZygoteDoor, RefusesASenderThatTheKernelDoesNotName) {
    auto control = os::make_socket_pair(os::SocketKind::Stream);
    ASSERT_TRUE(control && os::write_all(control->theirs, "h"));
    const Birth birth;
    EXPECT_EQ(ZygoteDoor(birth).admit(control->ours).error().kind, ErrorKind::Unavailable);
}

}  // namespace
}  // namespace cloister::agent
