#include "programs/agent/process_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/ids.h"
#include "programs/agent/terminal.h"

namespace cloister::agent {
namespace {

namespace fs = std::filesystem;

// Small segments, in a directory of its own.
class ProcessOutputTest : public testing::Test {
  protected:
    void SetUp() override {
        path_ = fs::temp_directory_path() / ("output-" + new_id());
        fs::create_directories(path_);
        directory_ = os::open_file(path_, O_RDONLY | O_DIRECTORY).value();
    }
    void TearDown() override { fs::remove_all(path_); }

    // All that a reader gets from `after` on, "<bytes dropped>" where some are not kept.
    static std::string read_from(const ProcessOutput& output, uint64_t after) {
        std::string text;
        FrameDecoder decoder;
        auto cursor = output.cursor_at(after);
        for (;;) {
            const auto piece = output.read(cursor, 64).value();
            if (piece.dropped > 0) text += "<" + std::to_string(piece.dropped) + ">";
            if (piece.dropped == 0 && piece.frames.empty()) return text;
            decoder.feed(piece.frames);
            while (const auto frame = decoder.next().value()) text += frame->payload;
        }
    }

    fs::path path_;
    os::Fd directory_;
};

TEST_F(ProcessOutputTest, IsReadFromAnyByteOn) {
    SpoolRoom room(directory_);
    ProcessOutput output(room, "p", 10);
    std::string all;
    for (const char* text : {"abc", "defgh", "i", "jklmnopqrs", "tu", "v", "wxyz"}) {
        output.append(all.size() % 2 == 0 ? FrameKind::Stdout : FrameKind::Stderr, text);
        all += text;
    }
    EXPECT_EQ(output.end(), all.size());
    for (size_t after = 0; after <= all.size(); ++after) {
        EXPECT_EQ(read_from(output, after), all.substr(after)) << after;
    }
    EXPECT_EQ(read_from(output, all.size() + 5), "");
}

TEST_F(ProcessOutputTest, AReaderFollows) {
    SpoolRoom room(directory_);
    ProcessOutput output(room, "p", 4);
    auto cursor = output.cursor_at(0);
    EXPECT_TRUE(output.read(cursor, 64).value().frames.empty());
    std::string got;
    for (int i = 0; i < 30; ++i) {
        output.append(FrameKind::Stdout, std::to_string(i));
        for (;;) {
            const std::string frames = output.read(cursor, 64).value().frames;
            if (frames.empty()) break;
            got += frames.substr(kFrameHeader);
        }
        EXPECT_EQ(cursor.offset, output.end());
    }
    EXPECT_TRUE(got.ends_with("272829")) << got;
}

TEST_F(ProcessOutputTest, TheOldestGoes) {
    SpoolRoom room(directory_);
    ProcessOutput output(room, "p", 2);
    for (int i = 0; i < 40; ++i) output.append(FrameKind::Stdout, "ab");
    EXPECT_EQ(output.end(), 80U);
    EXPECT_EQ(output.first(), 80U - 2 * output.segments());
    EXPECT_EQ(read_from(output, 10),
              "<" + std::to_string(output.first() - 10) + ">" + read_from(output, output.first()));
    auto behind = output.cursor_at(output.first());
    ASSERT_TRUE(output.drop_oldest_segment());
    EXPECT_EQ(output.read(behind, 64).value().dropped, 2U);
    EXPECT_EQ(behind.offset, output.first() + 2);  // the next frame came along
}

TEST_F(ProcessOutputTest, WithoutRoomWhatIsNewIsKept) {
    // Two files' worth; nobody else can give any back.
    SpoolRoom room(directory_, 4 * limits::kKiB, 0);
    ProcessOutput output(room, "p", limits::kKiB);
    const std::string line(512, 'x');
    for (int i = 0; i < 32; ++i) output.append(FrameKind::Stdout, line);
    EXPECT_EQ(output.end(), 32U * 512);
    EXPECT_GT(output.first(), 0U);
    EXPECT_LT(output.first(), output.end());
    EXPECT_LE(room.in_files(), 4 * limits::kKiB);
    output.append(FrameKind::Stdout, "last");
    EXPECT_TRUE(read_from(output, output.end() - 6).ends_with("last"));
}

TEST_F(ProcessOutputTest, GivesItsRoomBack) {
    SpoolRoom room(directory_, 1 << 20, 0);
    {
        ProcessOutput output(room, "p", 8);
        for (int i = 0; i < 9; ++i) output.append(FrameKind::Stdout, "12345678");
        EXPECT_GT(room.in_files(), 0U);
        output.drop_all();
        EXPECT_EQ(output.first(), output.end());
        EXPECT_EQ(read_from(output, 0), "<72>");
    }
    EXPECT_EQ(room.in_files(), 0U);
    EXPECT_TRUE(fs::is_empty(path_));
}

TEST(ScreenWatch, KnowsTheAlternateScreen) {
    ScreenWatch screen;
    screen.feed("plain\x1b[?104", 0);
    EXPECT_FALSE(screen.alternate());
    screen.feed("9h", 11);  // in two pieces
    EXPECT_TRUE(screen.alternate());
    EXPECT_EQ(screen.since(), 5U);
    screen.feed("drawn \x1b[?25h more", 13);  // another mode
    EXPECT_TRUE(screen.alternate());
    EXPECT_EQ(screen.since(), 5U);
    screen.feed("\x1b[?1049l$ ", 40);
    EXPECT_FALSE(screen.alternate());
    screen.feed("\x1b[?1049l\x1b[?1049h", 60);
    EXPECT_TRUE(screen.alternate());
    screen.feed("\x1b[?1049h\x1b[?1049l", 80);
    EXPECT_FALSE(screen.alternate());
}

TEST(Terminal, IsARealOne) {
    const auto terminal = open_terminal({.cols = 100, .rows = 40}, ::getuid());
    ASSERT_TRUE(terminal) << terminal.error().message;
    EXPECT_EQ(::isatty(terminal->theirs.get()), 1);
    ASSERT_TRUE(os::write_all(terminal->theirs, "hi\n"));
    std::string text(16, '\0');
    const ssize_t got = ::read(terminal->ours.get(), text.data(), text.size());
    ASSERT_GT(got, 0);
    EXPECT_EQ(text.substr(0, static_cast<size_t>(got)), "hi\r\n");
}

}  // namespace
}  // namespace cloister::agent
