#include "jail/template_root.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/ids.h"

namespace cloister::jail {
namespace {

namespace fs = std::filesystem;

class TemplateRoot : public testing::Test {
  protected:
    void SetUp() override {
        for (const char* name : {"proc", "dev", "sys", "tmp", "run"})
            fs::create_directories(root_ / name);
    }
    void TearDown() override { fs::remove_all(root_); }

    Result<void> check() const {
        return check_template_root(os::open_file(root_.string(), O_RDONLY | O_DIRECTORY).value());
    }

    fs::path root_ = fs::temp_directory_path() / ("template-" + new_id());
};

TEST_F(TemplateRoot, NeedsRealDirectories) {
    EXPECT_TRUE(check());
}

TEST_F(TemplateRoot, IsRefusedWithALinkOrAFileInTheirPlace) {
    for (const char* name : {"proc", "dev", "sys", "tmp", "run"}) {
        fs::remove(root_ / name);
        EXPECT_FALSE(check()) << name << " is missing";
        fs::create_directory_symlink("/etc", root_ / name);
        const auto linked = check();
        ASSERT_FALSE(linked) << name;
        EXPECT_EQ(linked.error().kind, ErrorKind::InvalidArgument);
        EXPECT_NE(linked.error().message.find(std::string("/") + name), std::string::npos);
        fs::remove(root_ / name);
        std::ofstream(root_ / name) << "x";
        EXPECT_FALSE(check()) << name << " is a file";
        fs::remove(root_ / name);
        fs::create_directory(root_ / name);
    }
}

}  // namespace
}  // namespace cloister::jail
