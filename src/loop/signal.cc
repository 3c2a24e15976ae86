#include <boost/asio/as_tuple.hpp>
#include <list>

#include "loop/loop.h"

namespace cloister {
namespace {

// One coroutine that waits: its timer ends early when it is notified.
struct Waiter {
    asio::steady_timer timer;
    bool notified = false;
};

}  // namespace

struct Signal::State {
    std::list<Waiter*> waiters;
};

namespace {

// Keeps a waiter in the list for as long as its coroutine's frame lives, also if the loop drops the
// frame.
template <class State>
class Enlisted {
  public:
    Enlisted(std::shared_ptr<State> state, Waiter& waiter)
        : state_(std::move(state)),
          place_(state_->waiters.insert(state_->waiters.end(), &waiter)) {}
    Enlisted(const Enlisted&) = delete;
    Enlisted& operator=(const Enlisted&) = delete;
    ~Enlisted() { state_->waiters.erase(place_); }

  private:
    std::shared_ptr<State> state_;
    typename std::list<Waiter*>::iterator place_;
};

template <class State>
Task<bool> wait_until(std::shared_ptr<State> state, asio::steady_timer::time_point deadline) {
    Waiter waiter{.timer = asio::steady_timer(co_await asio::this_coro::executor, deadline)};
    const Enlisted<State> enlisted(std::move(state), waiter);
    co_await waiter.timer.async_wait(asio::as_tuple(asio::use_awaitable));
    co_return waiter.notified;
}

}  // namespace

Signal::Signal() : state_(std::make_shared<State>()) {}
Signal::~Signal() = default;

Task<void> Signal::wait() {
    co_await wait_until(state_, asio::steady_timer::time_point::max());
}

Task<bool> Signal::wait_for(std::chrono::milliseconds timeout) {
    co_return co_await wait_until(state_, asio::steady_timer::clock_type::now() + timeout);
}

void Signal::notify_all() {
    for (Waiter* waiter : state_->waiters) {
        waiter->notified = true;
        waiter->timer.cancel();
    }
}

}  // namespace cloister
