#include "engine/warden_client.h"

#include <gtest/gtest.h>

#include "base/ids.h"
#include "engine/test_fakes.h"

namespace cloister::engine {
namespace {

Task<void> without_warden(Checks&) {
    const DataDirectory data;
    const auto client = std::make_shared<WardenClient>(layout::warden_socket(data.path()));
    client->start();
    const auto answer = co_await client->hello();
    EXPECT_EQ(answer.error().kind, ErrorKind::Unavailable);
    EXPECT_FALSE(client->built_in_template("base"));
    client->stop();
}
TEST(WardenClient, WithoutAWardenRequestsFailAtOnce) {
    on_loop(without_warden);
}

Task<void> wait_for_warden(std::shared_ptr<WardenClient> client, int* came) {
    const Result<void> connected = co_await client->connected();
    *came = connected ? 1 : -1;
}

Task<void> coming_later(Checks& checks) {
    const DataDirectory data;
    const auto client = std::make_shared<WardenClient>(layout::warden_socket(data.path()));
    int came = 0;
    client->start();
    spawn(wait_for_warden(client, &came));
    co_await checks.settle();
    EXPECT_EQ(came, 0);
    const auto warden = FakeWarden::start(data.path());
    for (int i = 0; i < 300 && came == 0; ++i) co_await checks.settle();
    EXPECT_EQ(came, 1);
    EXPECT_TRUE(client->built_in_template("base"));
    client->stop();
    warden->stop();
    co_await checks.settle();
}
TEST(WardenClient, AWardenThatIsJustStartingIsWaitedFor) {
    on_loop(coming_later);
}

Task<void> never_coming(Checks&) {
    const DataDirectory data;
    const auto client = std::make_shared<WardenClient>(layout::warden_socket(data.path()), 100);
    client->start();
    const auto missing = co_await client->connected();
    EXPECT_EQ(missing.error().kind, ErrorKind::Unavailable);
    client->stop();
}
TEST(WardenClient, AWardenThatDoesNotComeIsWaitedForNotForEver) {
    on_loop(never_coming);
}

Task<void> ask_status(std::shared_ptr<WardenClient> client, size_t* answered) {
    const auto facts = co_await client->hello();
    if (facts && facts->host_cpus == 2) ++*answered;
}

Task<void> overlapping(Checks& checks) {
    const DataDirectory data;
    const auto warden = FakeWarden::start(data.path());
    const auto client = std::make_shared<WardenClient>(layout::warden_socket(data.path()));
    client->start();
    while (!client->built_in_template("base")) co_await checks.settle();
    size_t answered = 0;
    for (int i = 0; i < 100; ++i) spawn(ask_status(client, &answered));
    for (int i = 0; i < 100 && answered < 100; ++i) co_await checks.settle();
    EXPECT_EQ(answered, 100U);
    EXPECT_TRUE((co_await client->list())->empty());
    EXPECT_EQ((co_await client->pool())->template_bytes, 1U << 20);
    EXPECT_EQ((co_await client->usage(new_id()))->disk_bytes, 4096U);
    EXPECT_EQ((co_await client->usage("nonsense")).error().kind, ErrorKind::InvalidArgument);
    client->stop();
    warden->stop();
    co_await checks.settle();
}
TEST(WardenClient, RequestsMayOverlap) {
    on_loop(overlapping);
}

Task<void> breaking(Checks& checks) {
    const DataDirectory data;
    const auto warden = FakeWarden::start(data.path());
    const auto client = std::make_shared<WardenClient>(layout::warden_socket(data.path()), 200);
    int connected = 0;
    client->on_connected([&connected] { ++connected; });
    client->start();
    while (connected == 0) co_await checks.settle();
    warden->silent = true;
    EXPECT_EQ((co_await client->hello()).error().kind, ErrorKind::DeadlineExceeded);
    warden->silent = false;
    warden->break_off();
    for (int i = 0; i < 100 && connected < 2; ++i) co_await checks.settle();
    EXPECT_EQ(connected, 2);
    EXPECT_TRUE(co_await client->hello());
    client->stop();
    warden->stop();
    co_await checks.settle();
}
TEST(WardenClient, ItConnectsAgainAndGivesUpOnSilence) {
    on_loop(breaking);
}

}  // namespace
}  // namespace cloister::engine
