// Input: the bytes that a client sent and nobody has used yet, read in the background.
//
// At most one read is on its way. While it is, consume() is not called, so the bytes stay in place.
// Internal to this room.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/limits.h"
#include "base/result.h"
#include "loop/loop.h"
#include "loop/tcp.h"

namespace cloister::http {

class Input : public std::enable_shared_from_this<Input> {
  public:
    explicit Input(TcpStream stream) : stream_(std::move(stream)) {}

    TcpStream& stream() { return stream_; }
    std::string_view bytes() const { return {storage_.get() + begin_, end_ - begin_}; }
    void consume(size_t count);

    // Begins a read if none is on its way. `on_gone` is called if it finds that the client went
    // away.
    void start_read();
    void set_on_gone(std::function<void()> on_gone) { on_gone_ = std::move(on_gone); }
    // For who learns from the bytes that the client has gone.
    void tell_gone() const {
        if (on_gone_) on_gone_();
    }
    // More bytes, or: Cancelled at the end of the stream, DeadlineExceeded at `deadline_ms`
    // (steady; 0: none).
    Task<Result<void>> read_more(int64_t deadline_ms);
    bool ended() const { return ended_; }

  private:
    // More than a header may have, and a good size for a piece of an upload. Pages are touched only
    // when used.
    static constexpr size_t kCapacity = 64 * limits::kKiB;
    static_assert(kCapacity > limits::kHttpHeaderMax);

    void read_done(Result<size_t> got);

    TcpStream stream_;
    std::unique_ptr<char[]> storage_ = std::make_unique_for_overwrite<char[]>(kCapacity);
    size_t begin_ = 0, end_ = 0;
    bool reading_ = false;
    bool ended_ = false;
    Result<void> last_read_;
    Signal read_finished_;
    std::function<void()> on_gone_;
};

}  // namespace cloister::http
