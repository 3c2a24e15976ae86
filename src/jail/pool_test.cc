// The pool on a real loop device: needs root and about 4 GiB of disk for a moment, as CI has them.
#include "jail/pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "base/ids.h"
#include "base/limits.h"
#include "jail/import.h"
#include "os/btrfs.h"
#include "os/loop_device.h"
#include "os/mount.h"
#include "os/process.h"
#include "wire/layout.h"

namespace cloister::jail {
namespace {

namespace fs = std::filesystem;

bool loop_there(const std::string& image) {
    const auto attached = os::loop_attached(image);
    return attached && *attached;
}

class PoolTest : public testing::Test {
  protected:
    void SetUp() override {
        // Mounts of a test stay its own, also when an assertion ends it early.
        ASSERT_TRUE(os::enter_private_mounts());
        fs::create_directories(layout::run_directory(data_));
        const auto made = make_pool_image(data_, limits::kPoolMin);
        ASSERT_TRUE(made) << made.error().message;
        auto pool = Pool::mount(data_);
        ASSERT_TRUE(pool) << pool.error().message;
        pool_ = std::make_unique<Pool>(std::move(*pool));
    }
    void TearDown() override {
        if (pool_) EXPECT_TRUE(pool_->unmount());
        for (int i = 0; i < 100 && loop_there(layout::pool_image(data_)); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(loop_there(layout::pool_image(data_))) << "the loop device frees itself";
        fs::remove_all(data_);
    }
    // The beginnings of an image.
    void make_root() const {
        for (const char* name : {"proc", "dev", "sys", "tmp", "run"})
            fs::create_directories(data_ + "/root/" + name);
    }
    std::string in_pool(const std::string& path) const {
        return layout::pool_directory(data_) + "/" + path;
    }

    std::string data_ = "/tmp/cloister-pool-" + std::to_string(::getpid());
    std::unique_ptr<Pool> pool_;
};

void write_text(const std::string& path, const std::string& text) {
    const auto file = os::open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(os::write_all(*file, text));
}

TEST_F(PoolTest, IsAllocatedInFullAndBoundsEachSandbox) {
    struct stat image{};
    ASSERT_EQ(::stat(layout::pool_image(data_).c_str(), &image), 0);
    EXPECT_GE(static_cast<uint64_t>(image.st_blocks) * 512, limits::kPoolMin);
    ASSERT_TRUE(pool_->has_quotas());

    const auto sandboxes = pool_->directory(kSandboxes);
    ASSERT_TRUE(sandboxes && os::create_subvolume(*sandboxes, "one"));
    const auto one = os::open_at(*sandboxes, "one", O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(one && os::limit_bytes(*one, 8 * limits::kMiB));
    const auto file = os::open_at(*one, "big", O_WRONLY | O_CREAT, 0644);
    ASSERT_TRUE(file);
    const auto written = os::write_all(*file, std::string(16 * limits::kMiB, 'x'));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().kind, ErrorKind::ResourceExhausted) << written.error().message;
    ASSERT_TRUE(pool_->sync());
    const auto used = os::used_bytes(*one);
    ASSERT_TRUE(used) << used.error().message;
    EXPECT_GT(*used, 4 * limits::kMiB);
    EXPECT_LE(*used, 8 * limits::kMiB);
    EXPECT_TRUE(os::delete_subvolume(*sandboxes, "one"));
    EXPECT_TRUE(os::delete_subvolume(*sandboxes, "one")) << "deleting twice is a success";
}

TEST_F(PoolTest, ImportsARuntimeOncePerContent) {
    const std::string runtime = data_ + "/runtime";
    fs::create_directories(runtime + "/bin");
    EXPECT_EQ(import_runtime(*pool_, runtime).error().kind, ErrorKind::InvalidArgument)
        << "no agent in it";
    write_text(runtime + "/bin/cloister-agent", "one");
    write_text(runtime + "/bin/cloister-sudo", "client");
    for (const char* name : {"/bin/cloister-agent", "/bin/cloister-sudo"}) {
        ASSERT_EQ(::chmod((runtime + name).c_str(), 0700), 0);
    }
    const auto first = import_runtime(*pool_, runtime);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_TRUE(is_id(first->id));
    EXPECT_FALSE(first->was_there);
    EXPECT_TRUE(import_runtime(*pool_, runtime)->was_there);

    const std::string agent = in_pool("runtimes/" + first->id + "/bin/cloister-agent");
    EXPECT_EQ(*os::read_file(agent, 10), "one");
    struct stat program{};
    ASSERT_EQ(::stat(agent.c_str(), &program), 0);
    EXPECT_EQ(program.st_mode & 07777, 0711u) << "nobody inside reads the agent's program";
    EXPECT_EQ(program.st_uid, limits::kLowIds) << "which is of an owner that no sandbox maps";
    const std::string sudo = in_pool("runtimes/" + first->id + "/bin/cloister-sudo");
    EXPECT_EQ(fs::status(sudo).permissions(), static_cast<fs::perms>(0755))
        << "for any user, whatever the umask was";
    EXPECT_FALSE(os::open_file(agent, O_WRONLY)) << "read-only";

    write_text(runtime + "/bin/cloister-agent", "two");
    EXPECT_NE(import_runtime(*pool_, runtime)->id, first->id);
}

TEST_F(PoolTest, GrowsWhileItIsUsed) {
    const uint64_t before = pool_->space()->bytes;
    EXPECT_EQ(pool_->grow(limits::kPoolMin).error().kind, ErrorKind::InvalidArgument)
        << "not larger than it is";
    const auto huge = pool_->grow(uint64_t{1} << 60);
    EXPECT_EQ(huge.error().kind, ErrorKind::ResourceExhausted);
    EXPECT_EQ(pool_->space()->bytes, before);

    write_text(in_pool("kept"), "kept");
    const auto grown = pool_->grow(limits::kPoolMin + 256 * limits::kMiB + 5);
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(pool_->space()->bytes, before + 256 * limits::kMiB);
    EXPECT_EQ(*os::read_file(in_pool("kept"), 10), "kept");
    struct stat image{};
    ASSERT_EQ(::stat(layout::pool_image(data_).c_str(), &image), 0);
    EXPECT_GE(image.st_blocks * 512, image.st_size) << "allocated in full";
}

TEST_F(PoolTest, GoesOnGrowingAfterAKill) {
    const uint64_t before = pool_->space()->bytes;
    const auto image = os::open_file(layout::pool_image(data_), O_RDWR);
    ASSERT_TRUE(image);
    ASSERT_EQ(::posix_fallocate(image->get(), limits::kPoolMin, 64 * limits::kMiB), 0);
    // The next warden mounts what is still mounted here, as sandboxes keep it.
    auto again = Pool::mount(data_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->space()->bytes, before + 64 * limits::kMiB);
    EXPECT_TRUE(again->unmount());
}

TEST_F(PoolTest, CountsWhatTemplatesHold) {
    const uint64_t before = *pool_->template_bytes();
    const auto templates = pool_->directory(kTemplates);
    ASSERT_TRUE(templates && os::create_subvolume(*templates, "one"));
    write_text(in_pool("templates/one/file"), std::string(2 * limits::kMiB, 'x'));
    ASSERT_TRUE(pool_->sync());
    const uint64_t after = *pool_->template_bytes();
    EXPECT_GE(after, before + 2 * limits::kMiB);
    EXPECT_LT(after, before + 4 * limits::kMiB);
}

TEST_F(PoolTest, ImportsAnImageAndStartsOverAfterAKill) {
    make_root();
    fs::create_directories(data_ + "/root/etc");
    write_text(data_ + "/root/etc/motd", "welcome");
    ASSERT_EQ(::chown((data_ + "/root/etc/motd").c_str(), 5000, 0), 0);
    const std::string image = data_ + "/base-0123456789ab.tar.zst";
    ASSERT_TRUE(os::run_program(
        {"tar", "--create", "--zstd", "--file", image, "--directory", data_ + "/root", "."}));
    EXPECT_EQ(pool_->built_in_template("base").error().kind, ErrorKind::NotFound);

    // What a killed import leaves: a partial subvolume with something in it.
    const auto templates = pool_->directory(kTemplates);
    ASSERT_TRUE(templates && os::create_subvolume(*templates, "base0123456789ab0000.partial"));
    write_text(in_pool("templates/base0123456789ab0000.partial/rest"), "half");

    const auto imported = import_image(*pool_, image);
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(imported->id, "base0123456789ab0000");
    EXPECT_EQ(imported->foreign_ids, 1u);
    EXPECT_EQ(*pool_->built_in_template("base"), imported->id);
    EXPECT_EQ(*os::read_file(in_pool("templates/base0123456789ab0000/etc/motd"), 100), "welcome");
    EXPECT_FALSE(fs::exists(in_pool("templates/base0123456789ab0000/rest")));
    EXPECT_TRUE(import_image(*pool_, image)->was_there);
}

TEST_F(PoolTest, ImportsALayerOverItsBase) {
    make_root();
    write_text(data_ + "/root/both", "base");
    const std::string base = data_ + "/base-0123456789ab.tar.zst";
    ASSERT_TRUE(os::run_program(
        {"tar", "--create", "--zstd", "--file", base, "--directory", data_ + "/root", "."}));
    fs::create_directories(data_ + "/layer");
    write_text(data_ + "/layer/both", "layer");
    const std::string layer = data_ + "/polyglot-00000000000f-0123456789ab.tar.zst";
    ASSERT_TRUE(os::run_program(
        {"tar", "--create", "--zstd", "--file", layer, "--directory", data_ + "/layer", "."}));
    const auto refused = import_image(*pool_, layer);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("base0123456789ab0000"), std::string::npos);

    ASSERT_TRUE(import_image(*pool_, base));
    EXPECT_EQ(pool_->built_in_template("polyglot").error().kind, ErrorKind::NotFound);
    const auto imported = import_image(*pool_, layer);
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(*pool_->built_in_template("polyglot"), "polyglot00000000000f");
    EXPECT_EQ(*pool_->built_in_template("base"), "base0123456789ab0000");
    EXPECT_EQ(*os::read_file(in_pool("templates/polyglot00000000000f/both"), 100), "layer");
    EXPECT_EQ(*os::read_file(in_pool("templates/base0123456789ab0000/both"), 100), "base");
}

TEST_F(PoolTest, RefusesAnImageWhoseProcIsALink) {
    make_root();
    fs::remove(data_ + "/root/proc");
    fs::create_directory_symlink("/etc", data_ + "/root/proc");
    const std::string image = data_ + "/base-00000000000e.tar.zst";
    ASSERT_TRUE(os::run_program(
        {"tar", "--create", "--zstd", "--file", image, "--directory", data_ + "/root", "."}));
    const auto refused = import_image(*pool_, image);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
    EXPECT_NE(refused.error().message.find("/proc is not a directory"), std::string::npos);
    EXPECT_FALSE(pool_->built_in_template("base"));
}

TEST_F(PoolTest, RefusesAnImageWithADevice) {
    make_root();
    ASSERT_EQ(::mknod((data_ + "/root/dev/null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
    const std::string image = data_ + "/base-00000000000d.tar.zst";
    ASSERT_TRUE(os::run_program(
        {"tar", "--create", "--zstd", "--file", image, "--directory", data_ + "/root", "."}));
    const auto refused = import_image(*pool_, image);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("dev/null"), std::string::npos)
        << refused.error().message;
    EXPECT_FALSE(pool_->built_in_template("base"));
}

TEST(PoolImage, SaysWhatIsWrongWithASize) {
    const std::string data = "/tmp";
    EXPECT_EQ(make_pool_image(data, 1).error().kind, ErrorKind::InvalidArgument);
    const auto huge = make_pool_image(data, uint64_t{1} << 60);
    EXPECT_EQ(huge.error().kind, ErrorKind::ResourceExhausted);
    EXPECT_NE(huge.error().message.find("free"), std::string::npos);
    EXPECT_FALSE(fs::exists(layout::pool_image(data)));
}

TEST(ImageName, TellsTemplateAndRevision) {
    const auto base = name_of_image("/some/where/base-f4b51292141f.tar.zst");
    ASSERT_TRUE(base);
    EXPECT_EQ(base->built_in, "base");
    EXPECT_EQ(base->revision, "basef4b51292141f0000");
    EXPECT_EQ(base->base, "");
    const auto layer = name_of_image("polyglot-0123456789ab-f4b51292141f.tar.zst");
    ASSERT_TRUE(layer);
    EXPECT_EQ(layer->built_in, "polyglot");
    EXPECT_EQ(layer->revision, "polyglot0123456789ab");
    EXPECT_EQ(layer->base, base->revision);
}

TEST(ImageName, MustBeWhole) {
    for (const char* wrong :
         {"base-f4b51292141.tar.zst", "base-F4B51292141F.tar.zst", "base-f4b51292141f.tar",
          "f4b51292141f.tar.zst", "base-../../etc/.tar.zst", "", "polyglot-0123456789ab.tar.zst",
          "base-f4b51292141f-f4b51292141f.tar.zst", "polyglot-0123456789ab-f4b51292141f0.tar.zst",
          "other-f4b51292141f.tar.zst", "code-interpreter-v1-f4b51292141f.tar.zst"}) {
        EXPECT_EQ(name_of_image(wrong).error().kind, ErrorKind::InvalidArgument) << wrong;
    }
}

}  // namespace
}  // namespace cloister::jail
