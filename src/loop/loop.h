// Loop: one thread that runs coroutines, and a few workers for calls that block. The only room that
// names Asio.
//
//     Loop loop;
//     loop.spawn(serve());          // a detached coroutine; its end is not waited for
//     loop.run();                   // until stop()
//
//     Task<Result<Row>> find() {
//         co_return co_await on_worker([] { return store.find(); });   // blocks a worker, not the
//         loop
//     }
//
// Threading: everything but on_worker's function runs on the loop's one thread, so engine, ops and
// faces need no locks. Exceptions do not cross a coroutine's end: spawn() aborts the program on
// one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "os/socket.h"

namespace cloister {

namespace asio = boost::asio;

template <class T>
using Task = asio::awaitable<T>;

class Loop {
  public:
    Loop();
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    asio::io_context& context() { return context_; }
    void spawn(Task<void> task);
    void run();  // until stop(), which may come before it
    void stop();
    // Calls `then` on the loop for each SIGTERM and SIGINT.
    void on_stop_signal(std::function<void()> then);

  private:
    asio::io_context context_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_;  // run() waits for stop()
    asio::thread_pool workers_;
    struct Signals;
    std::unique_ptr<Signals> signals_;
    friend asio::thread_pool& workers_of(Loop& loop);
};

// The loop that runs this coroutine's thread.
Loop& current_loop();
void spawn(Task<void> task);
Task<void> sleep_for(std::chrono::milliseconds duration);

asio::thread_pool& workers_of(Loop& loop);

// Runs `function` on a worker thread and answers its value on the loop.
template <class Function>
auto on_worker(Function function) -> Task<decltype(function())> {
    using Value = decltype(function());
    Loop& loop = current_loop();
    Value value = co_await asio::co_spawn(
        workers_of(loop),
        [](Function call) -> Task<Value> { co_return call(); }(std::move(function)),
        asio::use_awaitable);
    co_return value;
}

// Signal: coroutines wait for it; notify_all wakes those that wait now. Check your condition in a
// loop.
//     while (!ready) co_await changed.wait();
class Signal {
  public:
    Signal();
    ~Signal();
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;
    Task<void> wait();
    // False if `timeout` passed first.
    Task<bool> wait_for(std::chrono::milliseconds timeout);
    void notify_all();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

// A unix stream socket on the loop. Move-only; closing it ends pending calls with Cancelled.
class UnixStream {
  public:
    UnixStream();
    UnixStream(UnixStream&&) noexcept;
    UnixStream& operator=(UnixStream&&) noexcept;
    ~UnixStream();

    static Task<Result<UnixStream>> connect(std::string path);
    static Result<UnixStream> adopt(
        os::Fd connected);  // also SOCK_SEQPACKET: then a read is one message

    Task<Result<void>> write(std::string bytes);  // all of it; one writer at a time
    // At least one byte, at most `max_bytes`; empty at the end of the stream.
    Task<Result<std::string>> read_some(size_t max_bytes);
    // The same, with the descriptors that came beside the bytes, all close-on-exec.
    Task<Result<std::string>> read_some(size_t max_bytes, std::vector<os::Fd>& descriptors);
    // The same, with the descriptors that came beside the bytes.
    Task<Result<os::Received>> receive(size_t max_bytes);
    // Passes descriptors beside `bytes`, which are few enough to be taken at once.
    Task<Result<void>> send(std::string bytes, std::vector<int> fds);
    void close();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace cloister
