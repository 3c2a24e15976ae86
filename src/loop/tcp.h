// TCP on the loop: a listener, and connected streams with one deadline for each direction.
//
// Deadlines cost an assignment: nothing is armed per call. Who owns the streams calls expire() on
// each of them now and then (http::Server does so for all of its connections with one timer).
//
// Threading: the loop's thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "loop/loop.h"

namespace cloister {

class TcpStream {
  public:
    explicit TcpStream(asio::ip::tcp::socket socket);

    std::string peer() const { return peer_; }  // "127.0.0.1:50312"

    // Begins a read; one at a time. `done` is called on the loop with how many bytes came, 0 at the
    // end of the stream, or DeadlineExceeded if the read deadline passed. `into` and the stream
    // stay in place until then.
    void start_read(std::span<char> into, std::function<void(Result<size_t>)> done);
    // All of `bytes`; each step of progress has `step_timeout_ms`. A stream that timed out is
    // closed.
    Task<Result<void>> write(std::string_view bytes, int64_t step_timeout_ms);
    // `length` bytes of a file; the disk is waited for by a worker. Who reads the file keeps it
    // open.
    Task<Result<void>> send_file(const os::Fd& file, uint64_t offset, uint64_t length,
                                 int64_t step_timeout_ms);
    // What the socket takes at once, without waiting; the rest is lost. For a last word before a
    // close.
    void write_now(std::string_view bytes);
    // Acknowledges what has come at once. A client that sends a request in two small pieces, and
    // waits for the first to be acknowledged before it sends the second (Nagle), else loses 40 ms.
    void acknowledge();

    void set_read_deadline(int64_t at_steady_ms) { read_deadline_ms_ = at_steady_ms; }  // 0: none
    // Ends the calls whose deadline has passed.
    void expire(int64_t now_steady_ms);
    void cancel_read();
    void shutdown_write();
    void close();

  private:
    Result<size_t> read_result(const boost::system::error_code& failure, size_t got) const;

    asio::ip::tcp::socket socket_;
    std::string peer_;
    int64_t read_deadline_ms_ = 0;
    int64_t write_deadline_ms_ = 0;
    bool read_expired_ = false;
};

class TcpListener {
  public:
    // "127.0.0.1:8000", "[::1]:8000", "localhost:8000"; port 0 takes any free one.
    static Result<TcpListener> create(Loop& loop, std::string_view listen);

    uint16_t port() const { return port_; }
    // The next connection, with TCP_NODELAY. Cancelled after close().
    Task<Result<TcpStream>> accept();
    void close();

  private:
    explicit TcpListener(asio::ip::tcp::acceptor acceptor, uint16_t port)
        : acceptor_(std::move(acceptor)), port_(port) {}

    asio::ip::tcp::acceptor acceptor_;
    uint16_t port_;
};

}  // namespace cloister
