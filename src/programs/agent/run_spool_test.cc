#include "programs/agent/run_spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "base/ids.h"

namespace cloister::agent {
namespace {

namespace fs = std::filesystem;
using limits::kKiB;
using limits::kMiB;

class RunSpoolTest : public testing::Test {
  protected:
    void SetUp() override {
        path_ = fs::temp_directory_path() / ("spool-" + new_id());
        fs::create_directories(path_);
        directory_ = os::open_file(path_, O_RDONLY | O_DIRECTORY).value();
    }
    void TearDown() override { fs::remove_all(path_); }

    size_t files() const {
        return static_cast<size_t>(
            std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
    }

    static std::string all_of(const RunSpool& spool, size_t step = 1000) {
        std::string all;
        for (;;) {
            const std::string bytes = spool.read(all.size(), step).value();
            if (bytes.empty()) return all;
            all += bytes;
        }
    }

    fs::path path_;
    os::Fd directory_;
};

TEST_F(RunSpoolTest, FewFramesStayInMemoryAsTheyWouldBeSent) {
    SpoolRoom room(directory_);
    RunSpool spool(room, "few");
    std::string expected;
    append_frame(expected, FrameKind::Json, R"({"event":"started"})");
    append_frame(expected, FrameKind::Stdout, "one two");
    spool.append(FrameKind::Json, {R"({"event":)", R"("started"})"});
    spool.append(FrameKind::Stdout, {"one two"});
    EXPECT_EQ(all_of(spool, 3), expected);
    EXPECT_EQ(spool.size(), expected.size());
    EXPECT_EQ(room.in_memory(), expected.size());
    EXPECT_EQ(files(), 0U);
}

TEST_F(RunSpoolTest, ManyFramesGoToAFileInOrder) {
    SpoolRoom room(directory_);
    std::string expected;
    {
        RunSpool spool(room, "many");
        for (int i = 0; i < 50'000; ++i) {
            const std::string line = fmt::format("line {}\n", i);
            append_frame(expected, FrameKind::Stdout, line);
            spool.append(FrameKind::Stdout, {line});
        }
        const std::string large(3 * kMiB, 'L');
        append_frame(expected, FrameKind::Json, large);
        spool.append(FrameKind::Json, {large});
        append_frame(expected, FrameKind::Stderr, "last");
        spool.append(FrameKind::Stderr, {"last"});
        EXPECT_EQ(spool.size(), expected.size());
        EXPECT_EQ(all_of(spool, 50'000), expected);
        EXPECT_LE(room.in_memory(), limits::kSpoolInMemory);
        EXPECT_EQ(files(), 1U);
        EXPECT_EQ(spool.lost().frames, 0U);
    }
    EXPECT_EQ(room.in_files(), 0U);
    EXPECT_EQ(room.in_memory(), 0U);
    EXPECT_EQ(files(), 0U);
}

TEST_F(RunSpoolTest, WithoutRoomItKeepsTheBeginningAndCountsTheRest) {
    SpoolRoom room(directory_, 200 * kKiB);
    RunSpool spool(room, "full");
    const std::string chunk(50 * kKiB, 'c');
    std::string expected;
    for (int i = 0; i < 10; ++i) {
        spool.append(FrameKind::Stdout, {chunk});
        if (i < 4) append_frame(expected, FrameKind::Stdout, chunk);
    }
    EXPECT_EQ(all_of(spool, kMiB), expected);
    EXPECT_EQ(spool.lost().frames, 6U);
    EXPECT_EQ(spool.lost().bytes, 6 * chunk.size());
    spool.append(FrameKind::Stdout, {"small, but behind a hole"});
    EXPECT_EQ(spool.lost().frames, 7U);
}

TEST_F(RunSpoolTest, EndedRunsMakeRoom) {
    SpoolRoom room(directory_, 300 * kKiB);
    RunSpool old(room, "old"), fresh(room, "fresh");
    room.drop_oldest = [&] {
        if (!old.has_file()) return false;
        old.drop();
        return true;
    };
    const std::string chunk(100 * kKiB, 'c');
    old.append(FrameKind::Stdout, {chunk});
    old.append(FrameKind::Stdout, {chunk});
    fresh.append(FrameKind::Stdout, {chunk});
    EXPECT_EQ(old.size(), 0U);
    EXPECT_EQ(old.lost().frames, 2U);
    EXPECT_EQ(old.lost().bytes, 2 * chunk.size());
    EXPECT_EQ(fresh.lost().frames, 0U);
    EXPECT_EQ(files(), 1U);
    fresh.append(FrameKind::Stdout, {chunk});
    fresh.append(FrameKind::Stdout, {chunk});
    EXPECT_EQ(fresh.lost().frames, 1U);
}

TEST_F(RunSpoolTest, AFullDiskLosesFramesAndNothingElse) {
    // What a quota does, with the means of a test: the kernel refuses to make the file larger.
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit small = before;
    small.rlim_cur = 100 * kKiB;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    SpoolRoom room(directory_);
    RunSpool spool(room, "quota");
    for (int i = 0; i < 40; ++i) spool.append(FrameKind::Stdout, {std::string(10 * kKiB, 'q')});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_GT(spool.lost().frames, 0U);
    const std::string kept = all_of(spool);
    EXPECT_EQ(kept.size() % (10 * kKiB + kFrameHeader), 0U);
    EXPECT_EQ(kept.size() / (10 * kKiB + kFrameHeader) + spool.lost().frames, 40U);
}

TEST_F(RunSpoolTest, ManySpoolsShareTheMemory) {
    SpoolRoom room(directory_, limits::kSpoolBytesMax, 100 * kKiB);
    RunSpool first(room, "first"), second(room, "second");
    first.append(FrameKind::Stdout, {std::string(60 * kKiB, '1')});
    EXPECT_EQ(files(), 0U);
    second.append(FrameKind::Stdout, {std::string(50 * kKiB, '2')});
    EXPECT_LE(room.in_memory(), 100 * kKiB);
    EXPECT_EQ(second.lost().frames, 0U);
    EXPECT_EQ(all_of(second).size(), 50 * kKiB + kFrameHeader);
}

TEST(RunSpool, WithoutADirectoryThereIsOnlyMemory) {
    const os::Fd none;
    SpoolRoom room(none);
    RunSpool spool(room, "none");
    spool.append(FrameKind::Stdout, {std::string(40 * kKiB, 'a')});
    spool.append(FrameKind::Stdout, {std::string(40 * kKiB, 'b')});
    EXPECT_EQ(spool.size(), 40 * kKiB + kFrameHeader);
    EXPECT_EQ(spool.lost().frames, 1U);
}

}  // namespace
}  // namespace cloister::agent
