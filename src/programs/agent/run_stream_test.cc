#include "programs/agent/run_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <list>

#include "base/ids.h"
#include "os/socket.h"

namespace cloister::agent {
namespace {

namespace fs = std::filesystem;
using limits::kKiB;
using limits::kMiB;

// A connection of the agent, and its client's end.
class Pair {
  public:
    Pair(os::Poller& poller, Budget& budget) {
        auto sockets = os::make_socket_pair(os::SocketKind::Stream).value();
        (void)os::set_blocking(sockets.ours, os::Blocking::No);
        (void)os::set_blocking(sockets.theirs, os::Blocking::No);
        connection_ = std::make_unique<Connection>(std::move(sockets.ours), poller, budget);
        client_ = std::move(sockets.theirs);
    }
    Connection& connection() { return *connection_; }
    void close() { client_.reset(); }
    void send(FrameKind kind, std::string_view payload) {
        std::string bytes;
        append_frame(bytes, kind, payload);
        (void)os::write_all(client_, bytes);
    }
    // The payloads that have come since the last call, one a line.
    std::string read() {
        std::string seen;
        for (const std::string& payload : read_payloads()) seen += payload + "\n";
        return seen;
    }
    std::string read_joined() {
        std::string seen;
        for (const std::string& payload : read_payloads()) seen += payload;
        return seen;
    }
    std::vector<std::string> read_payloads() {
        std::string chunk(kMiB, '\0');
        std::vector<std::string> seen;
        for (;;) {
            const ssize_t got = ::read(client_.get(), chunk.data(), chunk.size());
            at_end_ = got == 0;
            if (got <= 0) break;
            decoder_.feed(std::string_view(chunk).substr(0, static_cast<size_t>(got)));
        }
        while (auto frame = decoder_.next().value()) seen.push_back(std::move(frame->payload));
        return seen;
    }
    bool at_end() const { return at_end_; }

  private:
    std::unique_ptr<Connection> connection_;
    os::Fd client_;
    FrameDecoder decoder_;
    bool at_end_ = false;
};

class RunStreamTest : public testing::Test {
  protected:
    void SetUp() override {
        std::signal(SIGPIPE, SIG_IGN);
        path_ = fs::temp_directory_path() / ("stream-" + new_id());
        fs::create_directories(path_);
        directory_ = os::open_file(path_, O_RDONLY | O_DIRECTORY).value();
        streams_ = std::make_unique<RunStreams>(directory_);
    }
    void TearDown() override {
        streams_.reset();
        fs::remove_all(path_);
    }
    // Lives longer than the streams, as connections of the agent do.
    Pair& pair() { return pairs_.emplace_back(poller_, budget_); }
    RunStream& add(std::string run = "run") { return streams_->add(std::move(run), "context"); }
    // What the client reads until nothing more comes.
    std::string all_for(Pair& client) {
        std::string all;
        for (int idle = 0; idle < 3;) {
            streams_->tend();
            (void)poller_.wait(0);
            const std::string more = client.read();
            idle = more.empty() ? idle + 1 : 0;
            all += more;
        }
        return all;
    }

    // What a client of that range reads, without the answer before it.
    std::string output(const ReadOutput& range) {
        Pair& client = pair();
        if (!streams_->read_output(client.connection(), range)) return "(not kept)";
        std::string all;
        for (int idle = 0; idle < 3;) {
            streams_->tend();
            (void)poller_.wait(0);
            const std::string more = client.read_joined();
            idle = more.empty() ? idle + 1 : 0;
            all += more;
        }
        EXPECT_TRUE(client.at_end());
        return all.substr(all.find('}') + 1);
    }

    fs::path path_;
    os::Fd directory_;
    os::Poller poller_;
    Budget budget_{kMiB};
    std::list<Pair> pairs_;
    std::unique_ptr<RunStreams> streams_;
};

TEST_F(RunStreamTest, AClientFromTheStartSeesAllLive) {
    Pair& client = pair();
    RunStream& stream = add();
    stream.attach(client.connection());
    stream.send(FrameKind::Json, "started");
    stream.send(FrameKind::Stdout, "one");
    EXPECT_EQ(client.read(), "started\none\n");
    stream.end("ended", "brief");
    EXPECT_EQ(client.read(), "ended\n");
    EXPECT_TRUE(client.at_end());
}

TEST_F(RunStreamTest, ALaterClientSeesTheSameAndThenWhatFollows) {
    RunStream& stream = add();
    std::string expected;
    for (int i = 0; i < 100'000; ++i) {
        stream.send(FrameKind::Stdout, fmt::format("line {}", i));
        expected += fmt::format("line {}\n", i);
    }
    Pair& client = pair();
    stream.attach(client.connection());
    EXPECT_GT(stream.backlog(), kMiB);
    stream.send(FrameKind::Stdout, "while it catches up");
    expected += "while it catches up\n";
    EXPECT_EQ(all_for(client), expected);
    EXPECT_EQ(stream.backlog(), 0U);
    stream.send(FrameKind::Stdout, "live");
    EXPECT_EQ(client.read(), "live\n");
    stream.end("ended", "brief");
    EXPECT_EQ(all_for(client), "ended\n");
}

TEST_F(RunStreamTest, AnEndedRunIsThereUntilItIsForgotten) {
    add("other");
    RunStream& stream = add();
    stream.send(FrameKind::Stdout, "one");
    streams_->forget("run");
    ASSERT_NE(streams_->find("run"), nullptr) << "it goes on";
    stream.end("ended", "brief");
    for (int i = 0; i < 2; ++i) {
        Pair& client = pair();
        stream.attach(client.connection());
        EXPECT_EQ(all_for(client), "one\nended\n");
        EXPECT_TRUE(client.at_end());
    }
    streams_->forget("run");
    EXPECT_EQ(streams_->find("run"), nullptr);
    EXPECT_NE(streams_->find("other"), nullptr);
}

TEST_F(RunStreamTest, TheOutputOfAForgottenRunIsKept) {
    RunStream& stream = add();
    std::string out;
    for (int i = 0; i < 100'000; ++i) {
        const std::string line = fmt::format("line {}\n", i);
        stream.send(i % 3 == 0 ? FrameKind::Stderr : FrameKind::Stdout, line);
        if (i % 3 != 0) out += line;
    }
    stream.end("ended", "brief");
    streams_->forget("run");
    for (const size_t offset : {size_t{0}, size_t{1}, out.size() / 2, out.size() - 5}) {
        EXPECT_TRUE(output({.run = "run", .stream = OutputStream::Stdout, .offset = offset}) ==
                    out.substr(offset))
            << offset;
    }
    EXPECT_EQ(output({.run = "run", .stream = OutputStream::Stdout, .offset = 7, .length = 20}),
              out.substr(7, 20));
    EXPECT_EQ(output({.run = "run", .offset = UINT64_MAX / 4}), "");
}

TEST_F(RunStreamTest, OfARunThatWroteNothingNothingIsKept) {
    RunStream& stream = add();
    stream.send(FrameKind::Json, "started");
    stream.end("ended", "brief");
    EXPECT_EQ(output({.run = "run"}), "");
    streams_->forget("run");
    EXPECT_EQ(output({.run = "run"}), "(not kept)");
}

TEST_F(RunStreamTest, TheOldestOutputsMakeRoom) {
    for (size_t i = 0; i < limits::kOutputsKeptMax + 1; ++i) {
        RunStream& stream = add(std::to_string(i));
        stream.send(FrameKind::Stdout, std::string(10 * kKiB, 'x'));
        stream.end("ended", "brief");
        streams_->forget(std::to_string(i));
    }
    EXPECT_EQ(output({.run = "0"}), "(not kept)");
    for (const char* run : {"1", "2", "500", "1000"}) {
        EXPECT_EQ(output({.run = run}), std::string(10 * kKiB, 'x'))
            << run << ": in a file or in memory";
    }
    EXPECT_FALSE(fs::is_empty(path_)) << "memory was short: some went to files";
}

TEST_F(RunStreamTest, AReaderOfWhatHasToMakeRoomIsCutOff) {
    RunStream& stream = add();
    stream.send(FrameKind::Stdout, std::string(4 * kMiB, 'x'));
    stream.end("ended", "brief");
    streams_->forget("run");
    Pair& client = pair();
    ASSERT_TRUE(streams_->read_output(client.connection(), {.run = "run"}));
    for (size_t i = 0; i < limits::kOutputsKeptMax; ++i) {
        RunStream& other = add(std::to_string(i));
        other.send(FrameKind::Stdout, "x");
        other.end("ended", "brief");
        streams_->forget(std::to_string(i));
    }
    EXPECT_LT(all_for(client).size(), 4 * kMiB);
    EXPECT_TRUE(client.connection().is_done());
}

TEST_F(RunStreamTest, ANewerClientReplacesTheOlder) {
    RunStream& stream = add();
    Pair& first = pair();
    Pair& second = pair();
    stream.attach(first.connection());
    stream.send(FrameKind::Stdout, "one");
    stream.attach(second.connection());
    stream.send(FrameKind::Stdout, "two");
    EXPECT_EQ(first.read(), "one\n");
    EXPECT_TRUE(first.at_end());
    EXPECT_EQ(second.read(), "one\ntwo\n");
}

TEST_F(RunStreamTest, ARunGoesOnWhenItsClientGoes) {
    RunStream& stream = add();
    Pair& client = pair();
    stream.attach(client.connection());
    client.close();
    for (int i = 0; i < 3; ++i) stream.send(FrameKind::Stdout, "unread");
    EXPECT_TRUE(client.connection().is_done());
    EXPECT_EQ(stream.backlog(), 0U);
    Pair& next = pair();
    stream.attach(next.connection());
    EXPECT_EQ(next.read(), "unread\nunread\nunread\n");
}

TEST_F(RunStreamTest, ASilentRunNoticesThatItsClientHasDied) {
    RunStream& stream = add();
    bool input_ended = false;
    stream.on_input_end = [&] { input_ended = true; };
    Pair& client = pair();
    stream.attach(client.connection());
    client.close();
    ASSERT_TRUE(poller_.wait(1000));
    EXPECT_TRUE(client.connection().is_done());
    EXPECT_FALSE(input_ended) << "stdin stays open for the next client";
}

TEST_F(RunStreamTest, StdinIsCountedAndOtherFramesCutTheClientOff) {
    RunStream& stream = add();
    std::string got;
    stream.on_frame = [&](const HeldMessage& frame) { got += frame->bytes.substr(1); };
    Pair& client = pair();
    stream.attach(client.connection());
    client.send(FrameKind::Stdin, "abc");
    ASSERT_TRUE(poller_.wait(1000));
    EXPECT_EQ(got, "abc");
    EXPECT_EQ(stream.stdin_bytes(), 3U);
    client.send(FrameKind::Data, "abc");
    ASSERT_TRUE(poller_.wait(1000));
    EXPECT_TRUE(client.connection().is_done());
    EXPECT_EQ(stream.stdin_bytes(), 3U);
}

TEST_F(RunStreamTest, WhatWasLostIsSaid) {
    const os::Fd none;
    RunStreams streams(none);
    RunStream& stream = streams.add("run", "context");
    stream.send(FrameKind::Stdout, "kept");
    stream.send(FrameKind::Stdout, std::string(100 * kKiB, 'x'));
    stream.send(FrameKind::Stdout, "abc");
    stream.end("ended", "brief");
    Pair& client = pair();
    stream.attach(client.connection());
    EXPECT_EQ(client.read(), "kept\n{\"event\":\"lost\",\"events\":2,\"bytes\":102403}\nended\n");
}

TEST_F(RunStreamTest, OfAVeryLongEndTheBriefOneIsKept) {
    Pair& live = pair();
    Pair& later = pair();
    RunStream& stream = add();
    stream.attach(live.connection());
    const std::string whole(100 * kKiB, 'w');
    stream.end(whole, "brief");
    EXPECT_EQ(all_for(live), whole + "\n");
    stream.attach(later.connection());
    EXPECT_EQ(later.read(), "brief\n");
}

TEST_F(RunStreamTest, OnlySoManyEndedRunsWaitToBeForgotten) {
    for (size_t i = 0; i < limits::kUnclaimedRunsMax + 10; ++i) {
        RunStream& stream = add(fmt::format("run{}", i));
        if (i != 0) stream.end("ended", "brief");
    }
    streams_->tend();
    EXPECT_EQ(streams_->all().size(), limits::kUnclaimedRunsMax + 1);
    EXPECT_NE(streams_->find("run0"), nullptr) << "it goes on";
    EXPECT_EQ(streams_->find("run9"), nullptr);
    EXPECT_NE(streams_->find("run10"), nullptr);
}

}  // namespace
}  // namespace cloister::agent
