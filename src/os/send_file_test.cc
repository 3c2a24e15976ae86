#include "os/send_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/socket.h"

namespace cloister::os {
namespace {

TEST(SendFile, SendsARangeUntilTheSocketIsFull) {
    char path[] = "/tmp/send-file-XXXXXX";
    Fd made(::mkstemp(path));
    ASSERT_TRUE(made.open());
    ASSERT_TRUE(write_all(made, std::string(8 << 20, 'x')));
    EXPECT_FALSE(size_to_send(made));  // it can be written
    const Fd file = open_file(path, O_RDONLY).value();
    EXPECT_EQ(size_to_send(file).value(), 8U << 20);
    const SocketPair pair = make_socket_pair(SocketKind::Stream).value();
    ASSERT_TRUE(set_blocking(pair.ours, Blocking::No));
    EXPECT_EQ(send_file(pair.ours.get(), file, (8 << 20) - 10, 100).value(), 10U);
    EXPECT_EQ(send_file(pair.ours.get(), file, 8 << 20, 100).error().kind, ErrorKind::TooLarge);
    while (send_file(pair.ours.get(), file, 0, 1 << 20).value() > 0) continue;
    ::unlink(path);
}

TEST(SendFile, KnowsWhatIsNoFile) {
    for (const char* path : {"/dev/zero", "/proc/self/stat", "/tmp"}) {
        EXPECT_EQ(size_to_send(open_file(path, O_RDONLY).value()).error().kind,
                  ErrorKind::InvalidArgument)
            << path;
    }
    EXPECT_FALSE(size_to_send(open_file("/etc/passwd", O_PATH).value()));
}

}  // namespace
}  // namespace cloister::os
