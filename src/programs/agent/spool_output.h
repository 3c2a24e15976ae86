// SpoolOutput: what a run wrote to stdout, to stderr, or to both in the order it came, read by
// range out of its spool.
//
//     SpoolOutput output(spool, {.which = OutputStream::Stdout, .offset = 100});
//     for (std::string bytes; !(bytes = TRY(output.next())).empty();) …
//
// It reads what the spool had when it was made; what the run writes later is for the next one. It
// holds one piece of the spool in memory, and must not outlive its spool.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "programs/agent/operations.h"
#include "programs/agent/run_spool.h"

namespace cloister::agent {

class SpoolOutput {
  public:
    SpoolOutput(const RunSpool& spool, const ReadOutput& range);

    // The bytes of the whole stream that the spool has.
    uint64_t size() const { return size_; }
    // At most about limits::kStreamChunk bytes; empty at the end of the range.
    Result<std::string> next();

  private:
    Result<std::string_view> look(size_t bytes);
    Result<void> enter_frame();
    Result<void> take(std::string& out);

    const RunSpool& spool_;
    const OutputStream which_;
    uint64_t size_, left_;
    uint64_t place_;         // of the next byte, in the spool
    uint64_t skip_;          // of the stream, before the range begins
    uint64_t in_frame_ = 0;  // bytes of the frame that are still ahead
    bool wanted_ = false;    // whether they belong to the stream
    std::string window_;     // of the spool, from window_at_ on
    uint64_t window_at_ = 0;
};

}  // namespace cloister::agent
