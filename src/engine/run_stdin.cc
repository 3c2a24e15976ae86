#include "engine/run_stdin.h"

#include <utility>

#include "base/limits.h"

namespace cloister::engine {
namespace {

Error run_is_over() {
    return make_error(ErrorKind::FailedPrecondition,
                      "the run has ended: it reads no stdin any more");
}

}  // namespace

void RunStdin::open(std::shared_ptr<AgentConnection> agent) {
    agent_ = std::move(agent);
    state_ = State::Open;
    changed_.notify_all();
}

void RunStdin::close() {
    state_ = State::Closed;
    agent_.reset();
    changed_.notify_all();
}

Task<Result<void>> RunStdin::write(std::string bytes, StdinEnd end) {
    const auto self = shared_from_this();
    used_ = true;
    if (writers_ == limits::kStdinWritersMax) {
        co_return make_error(
            ErrorKind::ResourceExhausted,
            "too many calls write to this stdin: wait for the earlier ones to return");
    }
    ++writers_;
    while (busy_ || state_ == State::Waiting) co_await changed_.wait();
    Result<void> written = co_await write_now(std::move(bytes), end);
    --writers_;
    co_return written;
}

Task<Result<void>> RunStdin::write_now(std::string bytes, StdinEnd end) {
    if (state_ == State::Closed) co_return run_is_over();
    if (state_ == State::Ended) {
        co_return make_error(ErrorKind::FailedPrecondition,
                             "the run's stdin was ended by an earlier call with `eof`");
    }
    busy_ = true;
    const std::shared_ptr<AgentConnection> agent = agent_;
    Result<void> sent = co_await agent->send_chunked(FrameKind::Stdin, std::move(bytes));
    if (sent && end == StdinEnd::Yes) {
        sent = co_await agent->send(FrameKind::Stdin, "");
        if (state_ == State::Open) state_ = State::Ended;
    }
    busy_ = false;
    changed_.notify_all();
    if (!sent) co_return run_is_over();
    co_return Result<void>{};
}

}  // namespace cloister::engine
