#include "programs/cli/service_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/time.h"
#include "programs/cli/supervisor.h"
#include "wire/layout.h"

namespace cloister::cli {
namespace {

class ServiceFilesTest : public ::testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(data_ + "/run"); }
    void TearDown() override { std::filesystem::remove_all(data_); }
    std::string data_ = "/tmp/cloister-service-files-test";
};

TEST_F(ServiceFilesTest, ARecordComesBack) {
    EXPECT_FALSE(read_service_file(data_));
    ServiceRecord record{.url = "http://127.0.0.1:1",
                         .supervisor = os::mark_of(::getpid()).value()};
    record.children = {{.pid = 12, .start_time = 34}, {.pid = 56, .start_time = 78}};
    ASSERT_TRUE(write_service_file(data_, record));
    const ServiceRecord read = read_service_file(data_).value();
    EXPECT_EQ(read.url, record.url);
    EXPECT_TRUE(os::is_running(read.supervisor));
    ASSERT_EQ(read.children.size(), 2U);
    EXPECT_EQ(read.children[1].start_time, 78U);
}

TEST_F(ServiceFilesTest, ABrokenRecordNamesNobody) {
    for (const char* text :
         {"", "{", "[]", R"({"url":"x"})",
          R"({"url":"x","written_at":"t","supervisor":{"pid":-1,"start_time":1},"children":[]})",
          R"({"url":"x","written_at":"t","supervisor":{"pid":1,"start_time":1},"children":[]})"}) {
        ASSERT_TRUE(os::write_file_atomically(layout::service_file(data_), text, 0644));
        EXPECT_FALSE(read_service_file(data_)) << text;
    }
}

os::Child launch_sleep() {
    os::Program program;
    program.argv = {"/bin/sleep", "60"};
    return os::Child::launch(program).value();
}

TEST_F(ServiceFilesTest, EndsOnlyTheProcessesThatItMeans) {
    os::Child ours = launch_sleep(), other = launch_sleep();
    os::ProcessMark stranger = other.mark();
    ++stranger.start_time;  // a later process with the same number
    end_processes({ours.mark(), stranger}, 5000);
    EXPECT_EQ(ours.end()->signal, SIGTERM);
    EXPECT_EQ(other.end(), std::nullopt);
}

TEST(SupervisorUrl, IsReachable) {
    EXPECT_EQ(url_of("127.0.0.1:8000"), "http://127.0.0.1:8000");
    EXPECT_EQ(url_of("0.0.0.0:1"), "http://127.0.0.1:1");
    EXPECT_EQ(url_of("[::]:1"), "http://[::1]:1");
}

}  // namespace
}  // namespace cloister::cli
