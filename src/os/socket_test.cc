#include "os/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace cloister::os {
namespace {

TEST(Socket, PassesDescriptorsBesideTheBytes) {
    const SocketPair pair = make_socket_pair(SocketKind::SeqPacket).value();
    const Pipe pipe = make_pipe().value();
    ASSERT_TRUE(send_with_fds(pair.ours, "two ends", {pipe.read.get(), pipe.write.get()}));
    Received got = receive_with_fds(pair.theirs, 100).value();
    EXPECT_EQ(got.bytes, "two ends");
    ASSERT_EQ(got.fds.size(), 2U);
    ASSERT_TRUE(write_all(got.fds[1], "through"));
    got.fds[1].reset();
    char text[8] = {};
    EXPECT_EQ(::read(pipe.read.get(), text, sizeof(text)), 7);
    EXPECT_STREQ(text, "through");
    EXPECT_EQ(::fcntl(got.fds[0].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(Socket, RefusesAMessageThatIsTooLarge) {
    const SocketPair pair = make_socket_pair(SocketKind::SeqPacket).value();
    ASSERT_TRUE(send_with_fds(pair.ours, std::string(100, 'x'), {}));
    EXPECT_EQ(receive_with_fds(pair.theirs, 50).error().kind, ErrorKind::InvalidArgument);
}

TEST(Socket, SeesTheOtherEndClose) {
    SocketPair pair = make_socket_pair(SocketKind::SeqPacket).value();
    pair.ours.reset();
    EXPECT_TRUE(receive_with_fds(pair.theirs, 50).value().bytes.empty());
}

TEST(Socket, KnowsItsPeerAndReplacesAStaleSocketFile) {
    const std::string path = "/tmp/cloister-socket-test-" + std::to_string(::getpid());
    {
        const Fd stale = listen_unix(path, SocketKind::Stream, 1).value();
    }
    const Fd listener = listen_unix(path, SocketKind::Stream, 1).value();
    const Fd client = connect_unix(path, SocketKind::Stream).value();
    const Peer peer = peer_of(client).value();
    EXPECT_EQ(peer.pid, ::getpid());
    EXPECT_EQ(peer.uid, ::getuid());
    std::filesystem::remove(path);
    EXPECT_FALSE(connect_unix(path, SocketKind::Stream));
    EXPECT_EQ(listen_unix("/tmp/" + std::string(200, 'x'), SocketKind::Stream, 1).error().kind,
              ErrorKind::InvalidArgument);
}

TEST(Socket, AcceptsOnlyWhatIsWaiting) {
    const std::string path = "/tmp/cloister-accept-" + std::to_string(::getpid());
    const auto listener = listen_unix(path, SocketKind::SeqPacket, 4);
    ASSERT_TRUE(listener);
    const auto none = accept_connection(*listener);
    ASSERT_TRUE(none);
    EXPECT_FALSE(none->has_value());
    const auto client = connect_unix(path, SocketKind::SeqPacket);
    ASSERT_TRUE(client);
    const auto server = accept_connection(*listener);
    ASSERT_TRUE(server && server->has_value());
    ASSERT_TRUE(write_all(*client, "hello"));
    EXPECT_EQ(receive_with_fds(**server, 64)->bytes, "hello");
    ::unlink(path.c_str());
}

}  // namespace
}  // namespace cloister::os
