#include "engine/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cloister::engine {
namespace {

// What an event costs beside its data: so that many tiny ones are bounded too.
constexpr size_t kEventOverhead = 64;
constexpr uint64_t kEventNumberMax = UINT64_MAX / 2;
constexpr size_t kLeftMax = 65'536;  // events that left the ring and whose place is still known

}  // namespace

RunLog::Reader::Reader(std::shared_ptr<RunLog> log, uint64_t after)
    : log_(std::move(log)), after_(std::min(after, kEventNumberMax)) {
    log_->readers_.push_back(this);
}

RunLog::Reader::Reader(Reader&& other) noexcept
    : log_(std::move(other.log_)), after_(other.after_), dropped_(std::move(other.dropped_)) {
    std::ranges::replace(log_->readers_, &other, this);
}

RunLog::Reader::~Reader() {
    if (!log_) return;
    std::erase(log_->readers_, this);
    log_->trim();
    log_->changed_.notify_all();
}

std::vector<Event> RunLog::Reader::take(size_t max_bytes) {
    std::vector<Event> out;
    uint64_t number = after_ + 1;
    // A run that was taken over may end earlier than its reader knows it: of the end it must hear.
    if (log_->closed_ && after_ > log_->last()) number = log_->last();
    if (number < log_->first_) {
        dropped_ = log_->dropped_before(log_->first_, after_);
        out.push_back({.number = log_->first_ - 1, .type = "dropped", .data = dropped_});
        number = log_->first_;
    }
    size_t bytes = 0;
    for (; number <= log_->last() && bytes < max_bytes; ++number) {
        const Kept& kept = log_->events_[number - log_->first_];
        out.push_back(Event{.number = number, .type = kept.type, .data = kept.data});
        bytes += kept.data.size() + kEventOverhead;
    }
    return out;
}

void RunLog::Reader::done(const std::vector<Event>& events) {
    if (events.empty()) return;
    after_ = events.back().number;
    log_->trim();
    log_->changed_.notify_all();
}

void RunLog::append(std::string_view type, std::string data, size_t output_bytes) {
    const size_t cost = data.size() + kEventOverhead;
    events_.push_back(Kept{.type = std::string(type),
                           .data = std::move(data),
                           .output_before = total_output_,
                           .cost_before = total_cost_});
    total_output_ += output_bytes;
    total_cost_ += cost;
    bytes_ += cost;
    trim();
    changed_.notify_all();
}

void RunLog::close() {
    closed_ = true;
    changed_.notify_all();
}

Task<void> RunLog::room() {
    while (held_back()) co_await changed_.wait();
}

void RunLog::hurry() {
    hurry_ = true;
    changed_.notify_all();
}

uint64_t RunLog::output_before(uint64_t number) const {
    if (number >= first_) return events_[number - first_].output_before;
    const uint64_t back = first_ - number;  // 1: the last that left
    if (back <= left_.size()) return left_[left_.size() - back];
    // A reader from the very start has lost everything; for another one that is this far behind the
    // count is of what is known.
    return number <= 1 || left_.empty() ? 0 : left_.front();
}

std::string RunLog::dropped_before(uint64_t first, uint64_t after) const {
    const uint64_t bytes = output_before(first) - output_before(after + 1);
    return fmt::format(R"({{"events":{},"bytes":{}}})", first - 1 - after, bytes);
}

uint64_t RunLog::slowest_reader() const {
    uint64_t after = last();
    for (const Reader* reader : readers_) after = std::min(after, reader->after_);
    return after;
}

bool RunLog::reader_lags() const {
    const uint64_t next = std::max(slowest_reader() + 1, first_);
    return next <= last() && total_cost_ - events_[next - first_].cost_before > kReaderLagMax;
}

void RunLog::trim() {
    const uint64_t read = slowest_reader();
    while (bytes_ > limits::kRunEventsMax && events_.size() > 1 && first_ <= read) {
        bytes_ -= events_.front().data.size() + kEventOverhead;
        left_.push_back(events_.front().output_before);
        if (left_.size() > kLeftMax) left_.pop_front();
        events_.pop_front();
        ++first_;
    }
}

}  // namespace cloister::engine
