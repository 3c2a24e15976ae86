// Fd: a file descriptor that closes itself. Every descriptor of ours is close-on-exec from birth.
//
// Threading: like a unique_ptr.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace cloister::os {

class Fd {
  public:
    Fd() = default;
    explicit Fd(int number) : number_(number) {}
    Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.number_, -1));
        return *this;
    }
    ~Fd() { reset(); }

    int get() const { return number_; }
    bool open() const { return number_ >= 0; }
    int release() { return std::exchange(number_, -1); }
    void reset(int number = -1);
    Result<Fd> duplicate() const;

  private:
    int number_ = -1;
};

struct Pipe {
    Fd read, write;
};
enum class Blocking { Yes, No };
Result<Pipe> make_pipe(Blocking blocking = Blocking::Yes);

// open(2) with O_CLOEXEC added.
Result<Fd> open_file(const std::string& path, int flags, mode_t mode = 0);
Result<Fd> open_at(const Fd& directory, const std::string& name, int flags, mode_t mode = 0);

// Reads to the end, at most `max_bytes`; TooLarge beyond.
Result<std::string> read_all(const Fd& fd, size_t max_bytes);
Result<std::string> read_file(const std::string& path, size_t max_bytes);
Result<void> write_all(const Fd& fd, std::string_view bytes);
// Writes beside the target, then renames: readers see the old file or the whole new one.
Result<void> write_file_atomically(const std::string& path, std::string_view bytes, mode_t mode);
// Whether there is something to read (or an end) within `timeout_ms`.
Result<bool> wait_readable(const Fd& fd, int64_t timeout_ms);
Result<void> set_blocking(const Fd& fd, Blocking blocking);

}  // namespace cloister::os
