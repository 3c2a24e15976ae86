#include "programs/shell/program_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/ids.h"
#include "os/fd.h"

namespace cloister::shell {
namespace {

namespace fs = std::filesystem;

class ProgramFileTest : public testing::Test {
  protected:
    void SetUp() override { fs::create_directories(directory_); }
    void TearDown() override { fs::remove_all(directory_); }
    std::string in_directory(const std::string& name) const { return directory_ / name; }

    fs::path directory_ = fs::temp_directory_path() / ("program-" + new_id());
};

TEST_F(ProgramFileTest, IsTheFileWithThatCode) {
    const std::string other = in_directory("other.sh"), right = in_directory("right.sh");
    ASSERT_TRUE(os::write_file_atomically(other, "echo b", 0600));
    ASSERT_TRUE(os::write_file_atomically(right, "echo a", 0600));
    {
        const auto file = ProgramFile::find_or_make({other, right}, "echo a").value();
        EXPECT_EQ(file.path(), right);
    }
    EXPECT_TRUE(fs::exists(right));
}

TEST_F(ProgramFileTest, IsMadeIfThereIsNone) {
    std::string path;
    {
        const auto file =
            ProgramFile::find_or_make({in_directory("x/a b.sh"), "/"}, "echo").value();
        path = file.path();
        EXPECT_TRUE(path.ends_with("/a b.sh")) << path;
        EXPECT_EQ(os::read_file(path, 100).value(), "echo");
    }
    EXPECT_FALSE(fs::exists(fs::path(path).parent_path()));
}

TEST_F(ProgramFileTest, HasANameInAnyCase) {
    for (const char* name : {"", "/", "..", "a/.."}) {
        const auto file = ProgramFile::find_or_make({name}, "echo").value();
        EXPECT_TRUE(file.path().ends_with("/program")) << file.path();
    }
}

}  // namespace
}  // namespace cloister::shell
