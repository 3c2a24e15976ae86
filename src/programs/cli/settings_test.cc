#include "programs/cli/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "os/fd.h"

namespace cloister::cli {
namespace {

class SettingsTest : public ::testing::Test {
  protected:
    void SetUp() override {
        for (const char* name : {"CLOISTER_URL", "CLOISTER_API_KEY", "CLOISTER_DATA"})
            ::unsetenv(name);
        std::filesystem::create_directories(data_);
    }
    void TearDown() override {
        SetUp();
        std::filesystem::remove_all(data_);
    }
    void write_client(std::string_view text) {
        ASSERT_TRUE(os::write_file_atomically(data_ + "/client.json", text, 0600));
    }
    std::string data_ = "/tmp/cloister-settings-test";
};

TEST_F(SettingsTest, FlagsComeBeforeVariablesBeforeFiles) {
    write_client(R"({"url":"http://file:1","api_key":"file-key"})");
    Place place{.data = data_};
    EXPECT_EQ(find_service(place)->url, "http://file:1");
    EXPECT_EQ(find_service(place)->key, "file-key");
    ::setenv("CLOISTER_API_KEY", "variable-key", 1);
    EXPECT_EQ(find_service(place)->url, "http://file:1");
    EXPECT_EQ(find_service(place)->key, "variable-key");
    place.key = "flag-key";
    place.url = "http://flag:1";
    EXPECT_EQ(find_service(place)->url, "http://flag:1");
    EXPECT_EQ(find_service(place)->key, "flag-key");
}

TEST_F(SettingsTest, ReadsWhatTheHostMustEnforce) {
    const auto settings =
        parse_settings("min_tier = \"namespace\"\nrequire_limits = [\"memory\", \"pids\"]", "x");
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->min_tier, "namespace");
    EXPECT_EQ(settings->require_limits, (std::vector<std::string>{"memory", "pids"}));
    EXPECT_EQ(parse_settings("require_limits = \"memory\"", "x").error().field, "require_limits");
    EXPECT_EQ(parse_settings("require_limits = [1]", "x").error().field, "require_limits");
}

TEST_F(SettingsTest, ReadsWhatTheNetworkIs) {
    const auto settings = parse_settings(
        "platform_allow = ['10.1.2.3']\ndns_servers = ['203.0.113.53']\n"
        "ca_bundle = '/etc/bundle.pem'\nupstream_proxy = 'http://proxy:3128'\n",
        "cloister.toml");
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->platform_allow, std::vector<std::string>{"10.1.2.3"});
    EXPECT_EQ(settings->dns_servers, std::vector<std::string>{"203.0.113.53"});
    EXPECT_EQ(settings->ca_bundle, "/etc/bundle.pem");
    EXPECT_EQ(settings->upstream_proxy, "http://proxy:3128");
    EXPECT_FALSE(parse_settings("platform_allow = '10.1.2.3'", "cloister.toml"));
}

TEST_F(SettingsTest, AKeyIsNotGivenToAnotherService) {
    write_client(R"({"url":"http://file:1","api_key":"file-key"})");
    const auto address = find_service({.data = data_, .url = "http://elsewhere:1"});
    ASSERT_FALSE(address);
    EXPECT_EQ(address.error().kind, ErrorKind::Unauthenticated);
}

TEST_F(SettingsTest, SaysThatNoServiceHasRun) {
    const auto address = find_service({.data = data_});
    ASSERT_FALSE(address);
    EXPECT_EQ(address.error().kind, ErrorKind::FailedPrecondition);
    EXPECT_NE(address.error().message.find("cloister serve"), std::string::npos);
    write_client("{");
    EXPECT_EQ(find_service({.data = data_}).error().kind, ErrorKind::InvalidArgument);
}

TEST_F(SettingsTest, DataDirectoriesAreAbsolute) {
    EXPECT_EQ(find_data({.data = "/a/b//"}).value(), "/a/b");
    EXPECT_TRUE(find_data({.data = "relative"})->ends_with("/relative"));
    ::setenv("CLOISTER_DATA", "/from/variable", 1);
    EXPECT_EQ(find_data({}).value(), "/from/variable");
}

TEST_F(SettingsTest, ReadsToml) {
    const FileSettings settings =
        parse_settings("listen = \"[::1]:9\"\nlog_level = \"warn\"\n", "x.toml").value();
    EXPECT_EQ(settings.listen, "[::1]:9");
    EXPECT_EQ(settings.log_level, "warn");
    EXPECT_EQ(settings.data, std::nullopt);
    EXPECT_NE(parse_settings("\nlisten = \n", "x.toml").error().message.find("x.toml line 2"),
              std::string::npos);
    EXPECT_NE(parse_settings("lisen = \"a\"", "x.toml").error().message.find("`lisen`"),
              std::string::npos);
    EXPECT_EQ(parse_settings("listen = 8000", "x.toml").error().field, "listen");
    EXPECT_FALSE(read_settings("/tmp/cloister-no-such.toml"));
}

}  // namespace
}  // namespace cloister::cli
