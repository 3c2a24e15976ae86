// Content that came compressed (Content-Encoding: gzip or deflate), unpacked piece by piece.
//
//     Inflater inflater;
//     inflater.feed(bytes);
//     for (;;) { auto piece = TRY(inflater.next()); if (piece.empty()) break; … }   // then feed
//     more if (!inflater.finished()) …                                                   // it
//     broke off
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cloister::http {

class Inflater {
  public:
    // What a few compressed bytes may become is bounded: `free` bytes, and `ratio` times what came.
    Inflater(uint64_t free, uint64_t ratio);
    ~Inflater();
    Inflater(const Inflater&) = delete;

    void feed(std::string bytes);
    // At most 64 KiB; empty when more has to be fed. InvalidArgument for what is not compressed so,
    // TooLarge beyond the bound.
    Result<std::string> next();
    bool finished() const { return finished_; }

  private:
    struct Stream;
    std::unique_ptr<Stream> stream_;
    std::string input_;
    size_t used_ = 0;
    uint64_t free_, ratio_;
    uint64_t in_ = 0, out_ = 0;
    bool finished_ = false;
};

}  // namespace cloister::http
