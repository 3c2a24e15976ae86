#include "loop/loop.h"

#include <gtest/gtest.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <csignal>
#include <thread>

#include "base/time.h"
#include "os/socket.h"

namespace cloister {
namespace {

using namespace std::chrono_literals;

// Coroutines of tests take what they use as parameters: a lambda's captures would die before the
// coroutine.
void run_to_end(Loop& loop, Task<void> task) {
    loop.spawn([](Loop& owner, Task<void> inner) -> Task<void> {
        co_await std::move(inner);
        owner.stop();
    }(loop, std::move(task)));
    loop.run();
}

Task<void> note(std::vector<int>& order, int value, std::chrono::milliseconds delay) {
    co_await sleep_for(delay);
    order.push_back(value);
}

Task<void> note_three(std::vector<int>& order) {
    spawn(note(order, 3, 40ms));
    spawn(note(order, 1, 1ms));
    spawn(note(order, 2, 15ms));
    co_await sleep_for(80ms);
}

TEST(Loop, RunsSpawnedCoroutinesBesideEachOther) {
    Loop loop;
    std::vector<int> order;
    run_to_end(loop, note_three(order));
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

struct WorkerReport {
    std::thread::id loop_thread, worker_thread, after;
    int64_t ticks = 0;
};

Task<void> count_ticks(WorkerReport& report) {
    for (;;) {
        co_await sleep_for(1ms);
        ++report.ticks;
    }
}

Task<void> use_worker(WorkerReport& report) {
    report.loop_thread = std::this_thread::get_id();
    spawn(count_ticks(report));
    report.worker_thread = co_await on_worker([] {
        std::this_thread::sleep_for(60ms);
        return std::this_thread::get_id();
    });
    report.after = std::this_thread::get_id();
}

TEST(Loop, AWorkerBlocksWithoutTheLoop) {
    Loop loop;
    WorkerReport report;
    run_to_end(loop, use_worker(report));
    EXPECT_NE(report.worker_thread, report.loop_thread);
    EXPECT_EQ(report.after, report.loop_thread);
    EXPECT_GT(report.ticks, 5);
}

TEST(Loop, DropsWhatStillWaitsWhenItEnds) {
    auto alive = std::make_shared<int>(1);
    {
        Loop loop;
        loop.spawn([](std::shared_ptr<int> held) -> Task<void> {
            Signal never;
            while (*held == 1) co_await never.wait();
        }(alive));
        run_to_end(loop, sleep_for(5ms));
        EXPECT_EQ(alive.use_count(), 2);
    }
    EXPECT_EQ(alive.use_count(), 1);
}

TEST(Loop, AStopBeforeTheRunCounts) {
    Loop loop;
    std::vector<int> order;
    loop.spawn(note(order, 1, 0ms));
    loop.stop();
    loop.run();
    EXPECT_TRUE(order.empty());
    run_to_end(loop, sleep_for(5ms));
    EXPECT_EQ(order, std::vector<int>{1});
}

TEST(Loop, CallsOnStopSignal) {
    Loop loop;
    int calls = 0;
    loop.on_stop_signal([&] {
        if (++calls == 2) loop.stop();
        std::raise(SIGTERM);
    });
    loop.spawn([]() -> Task<void> {
        std::raise(SIGINT);
        co_return;
    }());
    loop.run();
    EXPECT_EQ(calls, 2);
}

TEST(LoopDeathTest, AnExceptionOutOfADetachedCoroutineAborts) {
    EXPECT_DEATH(
        {
            Loop loop;
            loop.spawn([]() -> Task<void> {
                co_await sleep_for(1ms);
                throw std::runtime_error("thrown on purpose");
            }());
            loop.run();
        },
        "thrown on purpose");
}

struct Door {
    Signal changed;
    bool open = false;
    int through = 0;
};

Task<void> pass(Door& door) {
    while (!door.open) co_await door.changed.wait();
    ++door.through;
}

Task<void> open_after_false_alarm(Door& door) {
    for (int i = 0; i < 3; ++i) spawn(pass(door));
    co_await sleep_for(2ms);
    door.changed.notify_all();
    co_await sleep_for(2ms);
    EXPECT_EQ(door.through, 0);
    door.open = true;
    door.changed.notify_all();
    co_await sleep_for(2ms);
    EXPECT_EQ(door.through, 3);
}

TEST(Signal, WakesAllThatWait) {
    Loop loop;
    Door door;
    run_to_end(loop, open_after_false_alarm(door));
}

Task<void> notify_later(Signal& signal, std::chrono::milliseconds delay) {
    co_await sleep_for(delay);
    signal.notify_all();
}

Task<void> wait_twice(Signal& signal) {
    const int64_t begin = steady_ms();
    const bool in_vain = co_await signal.wait_for(20ms);
    EXPECT_FALSE(in_vain);
    EXPECT_GE(steady_ms() - begin, 19);
    spawn(notify_later(signal, 5ms));
    const bool notified = co_await signal.wait_for(10s);
    EXPECT_TRUE(notified);
    EXPECT_LT(steady_ms() - begin, 5000);
}

TEST(Signal, WaitForSaysWhichCameFirst) {
    Loop loop;
    Signal signal;
    run_to_end(loop, wait_twice(signal));
}

Task<void> echo_over_pair(os::Fd ours, const os::Fd& theirs) {
    auto stream = UnixStream::adopt(std::move(ours));
    EXPECT_TRUE(stream);
    auto written = co_await stream->write("to the other side");
    EXPECT_TRUE(written);
    auto received = os::receive_with_fds(theirs, 100);
    EXPECT_EQ(received.value().bytes, "to the other side");
    EXPECT_TRUE(os::send_with_fds(theirs, "first", {}));
    EXPECT_TRUE(os::send_with_fds(theirs, "second", {}));
    auto message = co_await stream->read_some(100);
    EXPECT_EQ(message.value(), "first");  // SEQPACKET: one message a read
}

TEST(UnixStream, CarriesMessages) {
    Loop loop;
    auto pair = os::make_socket_pair(os::SocketKind::SeqPacket).value();
    run_to_end(loop, echo_over_pair(std::move(pair.ours), pair.theirs));
}

Task<void> read_until_closed(UnixStream& stream, std::optional<ErrorKind>& ended_with) {
    auto bytes = co_await stream.read_some(10);
    if (!bytes) ended_with = bytes.error().kind;
}

Task<void> close_while_reading(os::Fd ours) {
    auto stream = UnixStream::adopt(std::move(ours));
    std::optional<ErrorKind> ended_with;
    spawn(read_until_closed(*stream, ended_with));
    co_await sleep_for(5ms);
    EXPECT_EQ(ended_with, std::nullopt);
    stream->close();
    co_await sleep_for(5ms);
    EXPECT_EQ(ended_with, ErrorKind::Cancelled);
}

TEST(UnixStream, CloseEndsAPendingRead) {
    Loop loop;
    auto pair = os::make_socket_pair(os::SocketKind::Stream).value();
    run_to_end(loop, close_while_reading(std::move(pair.ours)));
}

Task<void> connect_to(std::string path, Result<void>& outcome) {
    auto stream = co_await UnixStream::connect(std::move(path));
    if (!stream) outcome = std::move(stream).error();
}

TEST(UnixStream, NamesThePathThatNobodyListensOn) {
    Loop loop;
    Result<void> outcome;
    run_to_end(loop, connect_to("/tmp/cloister-no-such.sock", outcome));
    ASSERT_FALSE(outcome);
    EXPECT_NE(outcome.error().message.find("/tmp/cloister-no-such.sock"), std::string::npos);
    run_to_end(loop, connect_to(std::string(200, 'x'), outcome));
    EXPECT_EQ(outcome.error().kind, ErrorKind::InvalidArgument);
}

using Acceptor = asio::local::stream_protocol::acceptor;

Task<void> connect_and_note(std::string path, int& connected) {
    auto stream = co_await UnixStream::connect(std::move(path));
    if (stream && co_await stream->write("x")) ++connected;
}

Task<void> connect_beyond_backlog(std::string path, Acceptor& listener) {
    int connected = 0;
    spawn(connect_and_note(path, connected));
    spawn(connect_and_note(path, connected));
    co_await sleep_for(20ms);
    EXPECT_EQ(connected, 1);
    const auto first = listener.accept();
    co_await sleep_for(40ms);
    EXPECT_EQ(connected, 2);  // it came through once there was room
}

TEST(UnixStream, WaitsForAListenerWithAFullQueue) {
    Loop loop;
    const std::string path = "/tmp/cloister-loop-test.sock";
    std::remove(path.c_str());
    Acceptor listener(loop.context());
    listener.open();
    listener.bind(path);
    listener.listen(0);
    run_to_end(loop, connect_beyond_backlog(path, listener));
    std::remove(path.c_str());
}

}  // namespace
}  // namespace cloister
