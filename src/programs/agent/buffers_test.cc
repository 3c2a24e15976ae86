#include "programs/agent/buffers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/limits.h"

namespace cloister::agent {
namespace {

using limits::kKiB;

std::string message_of(std::string_view body) {
    std::string bytes;
    for (size_t i = 0; i < 4; ++i) bytes += static_cast<char>(body.size() >> 8 * i);
    return bytes + std::string(body);
}

TEST(Budget, GivesRoomBackWithTheShare) {
    Budget budget(100 * kKiB);
    Budget::Share first, second, small;
    EXPECT_TRUE(budget.try_take(80 * kKiB, first));
    EXPECT_FALSE(budget.try_take(30 * kKiB, second));
    EXPECT_TRUE(budget.try_take(1 * kKiB, small));
    first = Budget::Share();
    EXPECT_TRUE(budget.try_take(100 * kKiB, second));
}

TEST(MessageReader, ReadsOneMessageAndNothingBehindIt) {
    auto pipe = os::make_pipe(os::Blocking::No);
    ASSERT_TRUE(pipe);
    Budget budget(kKiB);
    MessageReader reader(budget, 100);
    const std::string bytes = message_of("first") + message_of("second") + "rest";
    EXPECT_EQ(reader.read(pipe->read).value(), ReadState::More);
    ASSERT_TRUE(os::write_all(pipe->write, bytes.substr(0, 6)));
    EXPECT_EQ(reader.read(pipe->read).value(), ReadState::More);
    ASSERT_TRUE(os::write_all(pipe->write, bytes.substr(6)));
    ASSERT_EQ(reader.read(pipe->read).value(), ReadState::Whole);
    EXPECT_EQ(reader.take()->bytes, "first");
    ASSERT_EQ(reader.read(pipe->read).value(), ReadState::Whole);
    EXPECT_EQ(reader.take()->bytes, "second");
    pipe->write.reset();
    EXPECT_EQ(os::read_all(pipe->read, 100).value(), "rest");
    EXPECT_EQ(reader.read(pipe->read).value(), ReadState::Closed);
}

TEST(MessageReader, RefusesSizesThatNobodySends) {
    auto pipe = os::make_pipe(os::Blocking::No);
    ASSERT_TRUE(pipe);
    Budget budget(kKiB);
    ASSERT_TRUE(os::write_all(pipe->write, std::string(4, '\xff')));
    EXPECT_FALSE(MessageReader(budget, 100).read(pipe->read));
    ASSERT_TRUE(os::write_all(pipe->write, std::string(4, '\0')));
    EXPECT_FALSE(MessageReader(budget, 100).read(pipe->read));
}

TEST(MessageReader, WaitsForRoom) {
    auto pipe = os::make_pipe(os::Blocking::No);
    ASSERT_TRUE(pipe);
    Budget budget(40 * kKiB);
    MessageReader reader(budget, 100 * kKiB);
    Budget::Share other;
    ASSERT_TRUE(budget.try_take(20 * kKiB, other));
    ASSERT_TRUE(os::write_all(pipe->write, message_of(std::string(30 * kKiB, 'x'))));
    EXPECT_EQ(reader.read(pipe->read).value(), ReadState::NoRoom);
    other = Budget::Share();
    ASSERT_EQ(reader.read(pipe->read).value(), ReadState::Whole);
    EXPECT_EQ(reader.take()->bytes.size(), 30 * kKiB);
}

TEST(OutQueue, KeepsTheOrderOfCopiedAndSharedBytes) {
    auto pipe = os::make_pipe(os::Blocking::No);
    ASSERT_TRUE(pipe);
    Budget budget(100 * kKiB);
    auto message = std::make_shared<Held>();
    ASSERT_TRUE(budget.try_take(100 * kKiB, message->share));
    message->bytes = std::string(100 * kKiB, 'm');
    OutQueue queue;
    queue.append("head ");
    queue.append(message, std::string_view(message->bytes).substr(0, 99 * kKiB));
    queue.append(message, std::string_view(message->bytes).substr(0, 1));
    queue.append(" tail");
    message.reset();
    std::string got;
    EXPECT_EQ(queue.size(), 99 * kKiB + 11);
    while (queue.size() > 0) {
        ASSERT_TRUE(queue.write_to(pipe->write));
        std::string part(64 * kKiB, 0);
        const ssize_t size = ::read(pipe->read.get(), part.data(), part.size());
        ASSERT_GT(size, 0);
        got.append(part, 0, static_cast<size_t>(size));
    }
    std::string rest(64 * kKiB, 0);
    for (ssize_t n = 0; (n = ::read(pipe->read.get(), rest.data(), rest.size())) > 0;) {
        got.append(rest, 0, static_cast<size_t>(n));
    }
    EXPECT_EQ(got, "head " + std::string(99 * kKiB + 1, 'm') + " tail");
    Budget::Share all;  // what was written holds no memory any more
    EXPECT_TRUE(budget.try_take(100 * kKiB, all));
}

TEST(OutQueue, SaysWhenNobodyReads) {
    auto sockets = os::make_pipe(os::Blocking::No);
    ASSERT_TRUE(sockets);
    std::signal(SIGPIPE, SIG_IGN);
    sockets->read.reset();
    OutQueue queue;
    queue.append("x");
    const auto written = queue.write_to(sockets->write);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().os_error, EPIPE);
}

}  // namespace
}  // namespace cloister::agent
