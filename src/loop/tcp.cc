#include "loop/tcp.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <charconv>
#include <optional>

#include "base/time.h"
#include "loop/failure.h"
#include "os/send_file.h"

namespace cloister {
namespace {

using asio::ip::tcp;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

std::string peer_name(const tcp::socket& socket) {
    boost::system::error_code failure;
    const tcp::endpoint peer = socket.remote_endpoint(failure);
    if (failure) return "unknown";
    const std::string address = peer.address().to_string();
    return fmt::format("{}:{}", peer.address().is_v6() ? "[" + address + "]" : address,
                       peer.port());
}

Error bad_listen(std::string_view listen) {
    return invalid_field("listen",
                         fmt::format("`{}` is no address to listen on: give ADDRESS:PORT, such as "
                                     "127.0.0.1:8000 or [::1]:8000",
                                     listen));
}

std::optional<uint16_t> port_from(std::string_view text) {
    uint16_t port = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return port;
}

Result<tcp::endpoint> endpoint_from(std::string_view listen) {
    const size_t colon = listen.rfind(':');
    if (colon == std::string_view::npos) return bad_listen(listen);
    std::string_view host = listen.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (host == "localhost") host = "127.0.0.1";
    boost::system::error_code failure;
    const auto address = asio::ip::make_address(std::string(host), failure);
    const std::optional<uint16_t> port = port_from(listen.substr(colon + 1));
    if (failure || !port) return bad_listen(listen);
    return tcp::endpoint(address, *port);
}

// As much of a step as the socket takes.
Result<uint64_t> send_step(int socket, const os::Fd& file, uint64_t offset, uint64_t length) {
    uint64_t sent = 0;
    while (sent < length) {
        const auto put = os::send_file(socket, file, offset + sent, length - sent);
        if (!put && sent == 0) return put;
        if (!put || *put == 0) break;
        sent += *put;
    }
    return sent;
}

}  // namespace

TcpStream::TcpStream(tcp::socket socket) : socket_(std::move(socket)), peer_(peer_name(socket_)) {}

void TcpStream::start_read(std::span<char> into, std::function<void(Result<size_t>)> done) {
    read_expired_ = false;
    socket_.async_read_some(
        asio::buffer(into.data(), into.size()),
        [this, done = std::move(done)](const boost::system::error_code& failure, size_t got) {
            done(read_result(failure, got));
        });
}

Result<size_t> TcpStream::read_result(const boost::system::error_code& failure, size_t got) const {
    if (!failure) return got;
    if (failure == asio::error::eof) return size_t{0};
    if (read_expired_) {
        return make_error(ErrorKind::DeadlineExceeded, "the other end sent nothing in time");
    }
    return loop_failure("reading from a connection", failure);
}

Task<Result<void>> TcpStream::write(std::string_view bytes, int64_t step_timeout_ms) {
    while (!bytes.empty()) {
        write_deadline_ms_ = steady_ms() + step_timeout_ms;
        auto [failure, put] =
            co_await socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()), kAsTuple);
        write_deadline_ms_ = 0;
        if (failure) co_return loop_failure("writing to a connection", failure);
        bytes.remove_prefix(put);
    }
    co_return Result<void>{};
}

// At most so much at once: another's turn on the worker comes soon.
constexpr uint64_t kSendStep = 4 << 20;

Task<Result<void>> TcpStream::send_file(const os::Fd& file, uint64_t offset, uint64_t length,
                                        int64_t step_timeout_ms) {
    boost::system::error_code failed;
    socket_.native_non_blocking(true, failed);
    if (failed) co_return loop_failure("writing to a connection", failed);
    while (length > 0) {
        // A closed socket's number may be another's already.
        if (!socket_.is_open()) co_return make_error(ErrorKind::Cancelled, "closed");
        os::Fd socket(::fcntl(socket_.native_handle(), F_DUPFD_CLOEXEC, 3));
        if (!socket.open()) co_return last_os_failure("writing to a connection");
        auto put = co_await on_worker(
            [number = socket.get(), &file, offset, step = std::min(length, kSendStep)] {
                return send_step(number, file, offset, step);
            });
        if (!put) co_return std::move(put).error();
        offset += *put;
        length -= *put;
        if (*put > 0) continue;
        write_deadline_ms_ = steady_ms() + step_timeout_ms;
        auto [failure] = co_await socket_.async_wait(tcp::socket::wait_write, kAsTuple);
        write_deadline_ms_ = 0;
        if (failure) co_return loop_failure("writing to a connection", failure);
    }
    co_return Result<void>{};
}

void TcpStream::write_now(std::string_view bytes) {
    boost::system::error_code ignored;  // a last word: whoever does not take it is not waited for
    socket_.non_blocking(true, ignored);
    socket_.write_some(asio::buffer(bytes.data(), bytes.size()), ignored);
}

void TcpStream::acknowledge() {
    const asio::detail::socket_option::boolean<IPPROTO_TCP, TCP_QUICKACK> quick(true);
    boost::system::error_code ignored;  // without it the answer is slower, no more
    socket_.set_option(quick, ignored);
}

void TcpStream::expire(int64_t now_steady_ms) {
    if (write_deadline_ms_ != 0 && now_steady_ms >= write_deadline_ms_) close();
    if (read_deadline_ms_ != 0 && now_steady_ms >= read_deadline_ms_) {
        read_deadline_ms_ = 0;
        read_expired_ = true;
        cancel_read();
    }
}

// Reads and writes share the socket's cancel; callers cancel a read only while they write nothing.
void TcpStream::cancel_read() {
    boost::system::error_code ignored;  // a closed socket has nothing to cancel
    socket_.cancel(ignored);
}

void TcpStream::shutdown_write() {
    boost::system::error_code ignored;  // the other end may be gone
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

void TcpStream::close() {
    boost::system::error_code ignored;  // closing what is closed already is fine
    socket_.close(ignored);
}

Result<TcpListener> TcpListener::create(Loop& loop, std::string_view listen) {
    const tcp::endpoint endpoint = TRY(endpoint_from(listen));
    tcp::acceptor acceptor(loop.context());
    boost::system::error_code failure;
    acceptor.open(endpoint.protocol(), failure);
    if (!failure) acceptor.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) acceptor.bind(endpoint, failure);
    if (!failure) acceptor.listen(asio::socket_base::max_listen_connections, failure);
    if (failure) return loop_failure(fmt::format("listening on {}", listen), failure);
    const uint16_t port = acceptor.local_endpoint(failure).port();
    return TcpListener(std::move(acceptor), port);
}

Task<Result<TcpStream>> TcpListener::accept() {
    auto [failure, socket] = co_await acceptor_.async_accept(kAsTuple);
    if (failure) co_return loop_failure("accepting a connection", failure);
    boost::system::error_code ignored;  // without it answers are slower, no more
    socket.set_option(tcp::no_delay(true), ignored);
    co_return TcpStream(std::move(socket));
}

void TcpListener::close() {
    boost::system::error_code ignored;  // closing what is closed already is fine
    acceptor_.close(ignored);
}

}  // namespace cloister
