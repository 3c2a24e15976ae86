#include "programs/cli/archive.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/ids.h"

namespace cloister::cli {
namespace {

namespace fs = std::filesystem;

class ArchiveTest : public testing::Test {
  protected:
    void SetUp() override {
        std::signal(SIGPIPE, SIG_IGN);  // as in main
        path_ = fs::temp_directory_path() / ("archive-" + new_id());
        fs::create_directories(path_ / "from/deep");
    }
    void TearDown() override { fs::remove_all(path_); }
    std::string get(const std::string& path) const {
        std::ifstream in(path_ / path);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    fs::path path_;
};

TEST_F(ArchiveTest, ADirectoryComesBackAsItWas) {
    std::ofstream(path_ / "from/a") << std::string(300'000, 'a');
    std::ofstream(path_ / "from/deep/b") << "b";
    fs::create_symlink("a", path_ / "from/link");
    const auto source = ArchiveSource::open(path_ / "from").value();
    ArchiveSink sink = ArchiveSink::create(path_ / "to/new").value();
    for (;;) {
        const std::string piece = source->next().value();
        if (piece.empty()) break;
        ASSERT_TRUE(sink.take(piece));
    }
    ASSERT_TRUE(sink.finish());
    EXPECT_EQ(sink.files(), 2U);
    EXPECT_EQ(get("to/new/a"), std::string(300'000, 'a'));
    EXPECT_EQ(get("to/new/deep/b"), "b");
    EXPECT_EQ(fs::read_symlink(path_ / "to/new/link"), "a");
}

TEST_F(ArchiveTest, ASourceThatNobodyReadsToTheEndIsFine) {
    for (int i = 0; i < 20; ++i)
        std::ofstream(path_ / ("from/" + std::to_string(i))) << std::string(100'000, 'x');
    const auto source = ArchiveSource::open(path_ / "from").value();
    EXPECT_FALSE(source->next().value().empty());
}

TEST_F(ArchiveTest, NothingLeadsOut) {
    std::ofstream(path_ / "kept") << "kept";
    ArchiveSink sink = ArchiveSink::create(path_ / "to").value();
    EXPECT_FALSE(sink.take(tar_header({.path = "../kept"})));
    ArchiveSink other = ArchiveSink::create(path_ / "to").value();
    ASSERT_TRUE(other.take(tar_header({.kind = TarKind::Symlink, .path = "up", .target = path_})));
    EXPECT_FALSE(other.take(tar_header({.path = "up/kept"})));
    EXPECT_EQ(get("kept"), "kept");
    EXPECT_FALSE(ArchiveSink::create(path_ / "to").value().finish());
}

}  // namespace
}  // namespace cloister::cli
