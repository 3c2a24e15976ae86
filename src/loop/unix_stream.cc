#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>

#include "base/check.h"
#include "base/time.h"
#include "loop/failure.h"
#include "loop/loop.h"
#include "os/socket.h"

namespace cloister {
namespace {

using Socket = asio::local::stream_protocol::socket;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

// A listener with a full queue refuses at once (EAGAIN); it is asked again for so long.
constexpr int64_t kConnectPatienceMs = 2'000;
constexpr std::chrono::milliseconds kConnectPause{5};

// Whether the connection is really there. After EAGAIN Asio polls the socket, which looks writable,
// and reports success.
bool is_connected(Socket& socket) {
    boost::system::error_code failure;
    (void)socket.remote_endpoint(failure);  // only the error counts
    return !failure;
}

}  // namespace

struct UnixStream::Impl {
    Socket socket;
};

UnixStream::UnixStream() = default;
UnixStream::UnixStream(UnixStream&&) noexcept = default;
UnixStream& UnixStream::operator=(UnixStream&&) noexcept = default;
UnixStream::~UnixStream() = default;

Task<Result<UnixStream>> UnixStream::connect(std::string path) {
    if (path.size() >= sizeof(sockaddr_un::sun_path)) {
        co_return make_error(ErrorKind::InvalidArgument,
                             "the socket path " + path + " is too long");
    }
    const asio::local::stream_protocol::endpoint endpoint(path);
    const int64_t give_up = steady_ms() + kConnectPatienceMs;
    for (;;) {
        Socket socket(current_loop().context());
        auto [failure] = co_await socket.async_connect(endpoint, kAsTuple);
        if (failure) co_return loop_failure("connecting to " + path, failure);
        if (is_connected(socket)) {
            UnixStream stream;
            stream.impl_ = std::make_unique<Impl>(std::move(socket));
            co_return stream;
        }
        if (steady_ms() >= give_up) co_return os_failure("connecting to " + path, EAGAIN);
        co_await sleep_for(kConnectPause);
    }
}

Result<UnixStream> UnixStream::adopt(os::Fd connected) {
    Socket socket(current_loop().context());
    boost::system::error_code failure;
    socket.assign(asio::local::stream_protocol(), connected.get(), failure);
    if (failure) return loop_failure("taking over a socket", failure);
    (void)connected.release();  // the socket owns it now
    UnixStream stream;
    stream.impl_ = std::make_unique<Impl>(std::move(socket));
    return stream;
}

Task<Result<void>> UnixStream::write(std::string bytes) {
    CLOISTER_CHECK(impl_ != nullptr);
    auto [failure, put] = co_await asio::async_write(impl_->socket, asio::buffer(bytes), kAsTuple);
    if (failure) co_return loop_failure("writing to a unix socket", failure);
    co_return Result<void>{};
}

Task<Result<std::string>> UnixStream::read_some(size_t max_bytes) {
    CLOISTER_CHECK(impl_ != nullptr);
    std::string bytes(max_bytes, '\0');
    auto [failure, got] = co_await impl_->socket.async_read_some(asio::buffer(bytes), kAsTuple);
    if (failure == asio::error::eof) co_return std::string();
    if (failure) co_return loop_failure("reading from a unix socket", failure);
    bytes.resize(got);
    co_return bytes;
}

Task<Result<std::string>> UnixStream::read_some(size_t max_bytes,
                                                std::vector<os::Fd>& descriptors) {
    auto received = co_await receive(max_bytes);
    if (!received) co_return std::move(received).error();
    for (os::Fd& descriptor : received->fds) descriptors.push_back(std::move(descriptor));
    co_return std::move(received->bytes);
}

Task<Result<os::Received>> UnixStream::receive(size_t max_bytes) {
    CLOISTER_CHECK(impl_ != nullptr);
    for (;;) {
        auto [failure] = co_await impl_->socket.async_wait(Socket::wait_read, kAsTuple);
        if (failure) co_return loop_failure("reading from a unix socket", failure);
        os::Fd borrowed(impl_->socket.native_handle());
        auto received = os::receive_with_fds(borrowed, max_bytes, os::Blocking::No);
        (void)borrowed.release();  // the socket's own
        if (received || received.error().os_error != EAGAIN) co_return received;
    }
}

Task<Result<void>> UnixStream::send(std::string bytes, std::vector<int> fds) {
    CLOISTER_CHECK(impl_ != nullptr);
    auto [failure] = co_await impl_->socket.async_wait(Socket::wait_write, kAsTuple);
    if (failure) co_return loop_failure("writing to a unix socket", failure);
    os::Fd borrowed(impl_->socket.native_handle());
    auto sent = os::send_with_fds(borrowed, bytes, fds);
    (void)borrowed.release();  // the socket's own
    co_return sent;
}

void UnixStream::close() {
    boost::system::error_code ignored;  // closing what is closed already is fine
    if (impl_) impl_->socket.close(ignored);
}

}  // namespace cloister
