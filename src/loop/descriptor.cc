#include "loop/descriptor.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/check.h"
#include "loop/failure.h"

namespace cloister {
namespace {

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
using Io = asio::posix::stream_descriptor;

}  // namespace

struct Descriptor::Impl {
    explicit Impl(os::Fd owned) : fd(std::move(owned)), io(current_loop().context()) {}
    ~Impl() {
        if (io.is_open()) (void)io.release();  // the descriptor itself is ours
    }
    os::Fd fd;
    Io io;
    bool closed = false;
};

Descriptor::Descriptor() = default;
Descriptor::Descriptor(Descriptor&&) noexcept = default;
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    if (this != &other) {
        close();
        impl_ = std::move(other.impl_);
    }
    return *this;
}
Descriptor::~Descriptor() {
    close();
}

Result<Descriptor> Descriptor::adopt(os::Fd fd) {
    Descriptor out;
    out.impl_ = std::make_shared<Impl>(std::move(fd));
    boost::system::error_code failure;
    out.impl_->io.assign(out.impl_->fd.get(), failure);
    if (failure) return loop_failure("watching a descriptor", failure);
    return out;
}

const os::Fd& Descriptor::fd() const {
    CLOISTER_CHECK(impl_ != nullptr);
    return impl_->fd;
}

Task<bool> Descriptor::readable() {
    const std::shared_ptr<Impl> held = impl_;
    if (!held || held->closed) co_return false;
    auto [failure] = co_await held->io.async_wait(Io::wait_read, kAsTuple);
    co_return !failure && !held->closed;
}

Task<bool> Descriptor::writable() {
    const std::shared_ptr<Impl> held = impl_;
    if (!held || held->closed) co_return false;
    auto [failure] = co_await held->io.async_wait(Io::wait_write, kAsTuple);
    co_return !failure && !held->closed;
}

// The timer cancels the wait; whichever comes first, the other is gone when this returns.
Task<Descriptor::Wait> Descriptor::wait_within(std::shared_ptr<Impl> held, For what,
                                               std::chrono::milliseconds most) {
    if (!held || held->closed) co_return Wait::Closed;
    asio::steady_timer timer(current_loop().context(), most);
    const auto timed_out = std::make_shared<bool>(false);
    timer.async_wait([held, timed_out](const boost::system::error_code& cancelled) {
        if (cancelled) return;
        *timed_out = true;
        boost::system::error_code ignored;
        held->io.cancel(ignored);
    });
    const auto kind = what == For::Read ? Io::wait_read : Io::wait_write;
    auto [failure] = co_await held->io.async_wait(kind, kAsTuple);
    if (held->closed) co_return Wait::Closed;
    if (!failure) co_return Wait::Ready;
    co_return *timed_out ? Wait::TimedOut : Wait::Closed;
}

Task<Descriptor::Wait> Descriptor::readable_within(std::chrono::milliseconds most) {
    co_return co_await wait_within(impl_, For::Read, most);
}

Task<Descriptor::Wait> Descriptor::writable_within(std::chrono::milliseconds most) {
    co_return co_await wait_within(impl_, For::Write, most);
}

void Descriptor::close() {
    if (!impl_) return;
    impl_->closed = true;
    boost::system::error_code ignored;  // it is gone either way
    impl_->io.cancel(ignored);
    impl_.reset();
}

}  // namespace cloister
