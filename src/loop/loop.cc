#include "loop/loop.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <exception>

#include "base/check.h"

namespace cloister {
namespace {

// Workers run what blocks: SQLite, and files of the state directory. More of them would only queue
// at the disk.
constexpr size_t kWorkers = 4;

thread_local Loop* running_loop = nullptr;  // set while run() is on this thread's stack

void abort_on_exception(const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
}

}  // namespace

struct Loop::Signals {
    explicit Signals(asio::io_context& context) : set(context, SIGTERM, SIGINT) {}
    asio::signal_set set;
    std::vector<std::function<void()>> functions;

    void wait() {
        set.async_wait([this](const boost::system::error_code& failure, int) {
            if (failure) return;
            for (const auto& function : functions) function();
            wait();
        });
    }
};

Loop::Loop() : work_(context_.get_executor()), workers_(kWorkers) {}
Loop::~Loop() = default;

// An exception that leaves a detached coroutine meets a noexcept function: the program aborts where
// it was thrown.
void Loop::spawn(Task<void> task) {
    asio::co_spawn(context_, std::move(task),
                   [](std::exception_ptr thrown) noexcept { abort_on_exception(thrown); });
}

void Loop::run() {
    Loop* const outer = std::exchange(running_loop, this);
    context_.run();
    context_.restart();  // after, not before: a stop() that comes before run() counts
    running_loop = outer;
}

void Loop::stop() {
    context_.stop();
}

void Loop::on_stop_signal(std::function<void()> then) {
    if (!signals_) {
        signals_ = std::make_unique<Signals>(context_);
        signals_->wait();
    }
    signals_->functions.push_back(std::move(then));
}

asio::thread_pool& workers_of(Loop& loop) {
    return loop.workers_;
}

Loop& current_loop() {
    CLOISTER_CHECK(running_loop != nullptr);
    return *running_loop;
}

void spawn(Task<void> task) {
    current_loop().spawn(std::move(task));
}

Task<void> sleep_for(std::chrono::milliseconds duration) {
    asio::steady_timer timer(co_await asio::this_coro::executor, duration);
    co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace cloister
