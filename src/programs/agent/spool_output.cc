#include "programs/agent/spool_output.h"

#include <algorithm>

namespace cloister::agent {
namespace {

uint64_t bytes_of(const StreamBytes& bytes, OutputStream which) {
    if (which == OutputStream::Stdout) return bytes.out;
    if (which == OutputStream::Stderr) return bytes.err;
    return bytes.out + bytes.err;
}

bool belongs(uint8_t kind, OutputStream which) {
    const bool out = kind == static_cast<uint8_t>(FrameKind::Stdout);
    const bool err = kind == static_cast<uint8_t>(FrameKind::Stderr);
    return (out && which != OutputStream::Stderr) || (err && which != OutputStream::Stdout);
}

uint64_t length_in(std::string_view header) {
    uint64_t length = 0;
    for (size_t i = 0; i < 4; ++i) length |= uint64_t{static_cast<uint8_t>(header[i])} << 8 * i;
    return length;
}

}  // namespace

SpoolOutput::SpoolOutput(const RunSpool& spool, const ReadOutput& range)
    : spool_(spool),
      which_(range.stream),
      size_(bytes_of(spool.output(), range.stream)),
      left_(std::min(range.length, size_ - std::min(range.offset, size_))) {
    const auto mark = std::ranges::find_if(
        spool.marks().rbegin(), spool.marks().rend(), [&](const RunSpool::Mark& known) {
            return bytes_of(known.before, which_) <= range.offset;
        });
    const bool found = mark != spool.marks().rend();
    place_ = found ? mark->place : 0;
    skip_ = range.offset - (found ? bytes_of(mark->before, which_) : 0);
}

Result<std::string> SpoolOutput::next() {
    std::string out;
    while (left_ > 0 && out.size() < limits::kStreamChunk) {
        if (in_frame_ == 0) {
            TRY_OK(enter_frame());
        } else if (!wanted_) {
            place_ += std::exchange(in_frame_, 0);
        } else if (skip_ > 0) {
            const uint64_t step = std::min(skip_, in_frame_);
            skip_ -= step;
            place_ += step;
            in_frame_ -= step;
        } else {
            TRY_OK(take(out));
        }
    }
    return out;
}

// At least so many bytes from the next one on.
Result<std::string_view> SpoolOutput::look(size_t bytes) {
    const bool inside = place_ >= window_at_ && place_ + bytes <= window_at_ + window_.size();
    if (!inside) {
        window_ = TRY(spool_.read(place_, limits::kStreamChunk));
        window_at_ = place_;
        // A read ends where the spool's file does: the rest is in memory.
        while (window_.size() < bytes) {
            const std::string more = TRY(spool_.read(place_ + window_.size(), bytes));
            if (more.empty()) return make_error(ErrorKind::Internal, "a spool ends in a frame");
            window_ += more;
        }
    }
    return std::string_view(window_).substr(place_ - window_at_);
}

Result<void> SpoolOutput::enter_frame() {
    const std::string_view header = TRY(look(kFrameHeader));
    // The length counts the byte of the kind.
    in_frame_ = length_in(header) - 1;
    wanted_ = belongs(static_cast<uint8_t>(header[4]), which_);
    place_ += kFrameHeader;
    return {};
}

Result<void> SpoolOutput::take(std::string& out) {
    const std::string_view here = TRY(look(1));
    const size_t step = std::min(
        {static_cast<uint64_t>(here.size()), in_frame_, left_, uint64_t{limits::kStreamChunk}});
    out += here.substr(0, step);
    place_ += step;
    in_frame_ -= step;
    left_ -= step;
    return {};
}

}  // namespace cloister::agent
