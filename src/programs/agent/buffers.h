// The agent's memory for bytes on their way, which is bounded whatever clients and user code do.
//
//     Budget       how much memory large messages may take together
//     MessageReader one message after the other from a descriptor, each in one exact allocation
//     OutQueue     bytes that a descriptor has not taken yet; large messages are shared, not copied
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "os/fd.h"

namespace cloister::agent {

// Grants shares of a fixed size of memory, which come back when the share is destroyed.
class Budget {
  public:
    explicit Budget(size_t bytes) : free_(bytes) {}
    Budget(const Budget&) = delete;

    class Share {
      public:
        Share() = default;
        Share(Share&& other) noexcept
            : budget_(std::exchange(other.budget_, nullptr)),
              bytes_(std::exchange(other.bytes_, 0)) {}
        Share& operator=(Share&& other) noexcept {
            std::swap(budget_, other.budget_);
            std::swap(bytes_, other.bytes_);
            return *this;
        }
        ~Share() {
            if (budget_ != nullptr) budget_->free_ += bytes_;
        }

      private:
        friend Budget;
        Share(Budget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}
        Budget* budget_ = nullptr;
        size_t bytes_ = 0;
    };

    // Whether `share` was filled: small messages always are, larger ones if there is room.
    bool try_take(size_t bytes, Share& share);

  private:
    size_t free_;
};

// A whole message, held by everyone who still needs a slice of it.
struct Held {
    std::string bytes;
    Budget::Share share;
};
using HeldMessage = std::shared_ptr<Held>;

enum class ReadState {
    More,    // nothing more to read now
    Whole,   // a message is there: take it
    NoRoom,  // the budget is used up: try again when something was written
    Closed,  // the other end closed, between two messages or within one
};

// Reads messages that begin with their length (4 bytes, little endian) from a non-blocking
// descriptor. It never reads beyond the message, so that another reader can go on from there.
class MessageReader {
  public:
    MessageReader(Budget& budget, size_t max_bytes) : budget_(budget), max_(max_bytes) {}

    // InvalidArgument for a length of 0 or over the maximum; the stream is useless after it.
    Result<ReadState> read(const os::Fd& fd);
    HeldMessage take();

  private:
    Result<ReadState> read_length(const os::Fd& fd);

    Budget& budget_;
    size_t max_;
    std::array<char, 4> length_{};
    size_t length_read_ = 0;
    size_t body_read_ = 0;
    HeldMessage message_;
};

class OutQueue {
  public:
    void append(std::string_view bytes);
    // A slice of a message, which is kept until it has been written. Small slices are copied.
    void append(const HeldMessage& message, std::string_view slice);
    // Writes what the descriptor (a pipe or socket, non-blocking) takes now.
    Result<void> write_to(const os::Fd& fd);
    size_t size() const { return size_; }
    void clear();

  private:
    struct Chunk {
        std::string owned;
        HeldMessage held;
        std::string_view slice;  // of held
        std::string_view bytes() const { return held ? slice : std::string_view(owned); }
    };
    std::deque<Chunk> chunks_;
    size_t written_ = 0;  // of the first chunk
    size_t size_ = 0;
};

}  // namespace cloister::agent
