#include "engine/run_log.h"

#include <gtest/gtest.h>

#include "engine/test_loop.h"

namespace cloister::engine {
namespace {

std::vector<uint64_t> numbers(const std::vector<Event>& events) {
    std::vector<uint64_t> out;
    out.reserve(events.size());
    for (const Event& event : events) out.push_back(event.number);
    return out;
}

Task<void> numbering(Checks&) {
    auto log = std::make_shared<RunLog>();
    log->append("started", "{}");
    log->append("stdout", R"({"text":"a"})");
    RunLog::Reader late = log->attach(1);
    const auto events = late.take(1'000);
    EXPECT_EQ(numbers(events), (std::vector<uint64_t>{2}));
    EXPECT_EQ(events.front().type, "stdout");
    late.done(events);
    EXPECT_TRUE(late.take(1'000).empty());
    EXPECT_EQ(log->last(), 2U);
    co_return;
}
TEST(RunLog, NumbersFromOneAndResumes) {
    on_loop(numbering);
}

Task<void> dropping(Checks&) {
    auto log = std::make_shared<RunLog>();
    constexpr size_t kEvents = 100;
    const size_t each = limits::kRunEventsMax / 10;
    for (size_t i = 0; i < kEvents; ++i) log->append("stdout", std::string(each, 'x'), each);
    EXPECT_LE(log->bytes(), limits::kRunEventsMax);
    for (const uint64_t after : {uint64_t{0}, uint64_t{7}}) {
        RunLog::Reader reader = log->attach(after);
        const auto events = reader.take(1);
        EXPECT_EQ(events.front().type, "dropped");
        EXPECT_EQ(events.at(1).number, events.front().number + 1);
        const uint64_t lost = events.front().number - after;
        EXPECT_EQ(events.front().data, "{\"events\":" + std::to_string(lost) +
                                           ",\"bytes\":" + std::to_string(lost * each) + "}");
    }
    co_return;
}
TEST(RunLog, AReaderThatComesTooLateLearnsExactlyWhatItMissed) {
    on_loop(dropping);
}

Task<void> write_many(std::shared_ptr<RunLog> log, size_t each, size_t* written) {
    for (int i = 0; i < 64; ++i) {
        co_await log->room();
        log->append("stdout", std::string(each, 'x'));
        ++*written;
    }
    log->close();
}

Task<void> back_pressure(Checks& checks) {
    auto log = std::make_shared<RunLog>();
    constexpr size_t kEach = kReaderLagMax / 5 * 2;
    auto reader = std::make_unique<RunLog::Reader>(log->attach(0));
    size_t written = 0;
    spawn(write_many(log, kEach, &written));
    co_await checks.settle();
    EXPECT_EQ(written, 3U);  // two are below the bound, the third is above it
    auto events = reader->take(1);
    reader->done(events);
    co_await checks.settle();
    EXPECT_EQ(written, 4U);
    reader.reset();  // nobody is attached: the run goes on
    while (!log->closed()) co_await checks.settle();
    EXPECT_EQ(written, 64U);
    EXPECT_LE(log->bytes(), limits::kRunEventsMax);
}
TEST(RunLog, TheWriterWaitsForAttachedReadersOnly) {
    on_loop(back_pressure);
}

Task<void> hurrying(Checks& checks) {
    auto log = std::make_shared<RunLog>();
    RunLog::Reader reader = log->attach(0);
    size_t written = 0;
    spawn(write_many(log, kReaderLagMax, &written));
    co_await checks.settle();
    EXPECT_LT(written, 64U);
    log->hurry();
    co_await checks.settle();
    EXPECT_EQ(written, 64U);
    EXPECT_EQ(reader.take(1).front().number, 1U);  // what it has not read yet is still there
}
TEST(RunLog, AHurriedRunDoesNotWait) {
    on_loop(hurrying);
}

Task<void> reader_ahead(Checks&) {
    const auto log = std::make_shared<RunLog>();
    RunLog::Reader reader = log->attach(2);  // it has two events from an earlier server
    EXPECT_FALSE(log->held_back());
    log->append("stdout", "1");
    log->append("stdout", "2");
    EXPECT_TRUE(reader.take(SIZE_MAX).empty());
    log->append("stdout", "3");
    const auto events = reader.take(SIZE_MAX);
    EXPECT_EQ(events.size(), 1U);
    EXPECT_EQ(events.front().data, "3");
    RunLog::Reader far = log->attach(UINT64_MAX);
    log->append("stdout", std::string(2 * kReaderLagMax, 'x'));
    reader.done(reader.take(SIZE_MAX));
    EXPECT_TRUE(far.take(SIZE_MAX).empty());
    EXPECT_FALSE(log->held_back());
    log->append("ended", "{}");
    log->close();
    const auto last = far.take(SIZE_MAX);
    EXPECT_EQ(numbers(last), (std::vector<uint64_t>{5}));
    far.done(last);
    EXPECT_TRUE(far.take(SIZE_MAX).empty());
    co_return;
}
TEST(RunLog, AReaderFromAnEarlierServerGetsNoEventTwice) {
    on_loop(reader_ahead);
}

}  // namespace
}  // namespace cloister::engine
