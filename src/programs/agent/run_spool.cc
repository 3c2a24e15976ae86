#include "programs/agent/run_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cloister::agent {
namespace {

// The pages of a file count as the agent's memory until they are on the disk: they are sent there
// early, and let go.
constexpr uint64_t kWriteBackStep = limits::kMiB;

size_t size_of(std::initializer_list<std::string_view> parts) {
    size_t size = 0;
    for (const std::string_view part : parts) size += part.size();
    return size;
}

Result<void> write_at(const os::Fd& file, uint64_t place, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put =
            ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(place));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return last_os_failure("writing a spool");
        place += static_cast<uint64_t>(put);
        bytes.remove_prefix(static_cast<size_t>(put));
    }
    return {};
}

bool is_full(const Error& error) {
    return error.os_error == ENOSPC || error.os_error == EDQUOT;
}

}  // namespace

void RunSpool::append(FrameKind kind, std::initializer_list<std::string_view> parts) {
    const size_t payload = size_of(parts);
    // After the first frame that was lost none is kept: a stream has one hole at most.
    const uint64_t place = size();
    const bool kept = lost_.frames == 0 && store(kind, parts, payload);
    if (kept) count_kept(kind, place, payload);
    Count& count = kept ? kept_ : lost_;
    ++count.frames;
    count.bytes += payload;
}

void RunSpool::count_kept(FrameKind kind, uint64_t place, size_t payload) {
    if (place >= (marks_.empty() ? 0 : marks_.back().place) + limits::kSpoolMarkStep) {
        marks_.push_back({.place = place, .before = output_});
    }
    if (kind == FrameKind::Stdout) output_.out += payload;
    if (kind == FrameKind::Stderr) output_.err += payload;
}

bool RunSpool::buffer_takes(size_t bytes) const {
    return buffer_.size() + bytes <= limits::kSpoolInMemory && room_.has_memory(bytes);
}

bool RunSpool::store(FrameKind kind, std::initializer_list<std::string_view> parts,
                     size_t payload) {
    const std::string header = frame_header(kind, payload);
    const size_t bytes = header.size() + payload;
    if (!room_.has_memory(bytes) && room_.spill_oldest) room_.spill_oldest();
    if (!buffer_takes(bytes) && !flush()) return false;
    if (!buffer_takes(bytes)) return write_to_file(header, parts);
    buffer_ += header;
    for (const std::string_view part : parts) buffer_ += part;
    room_.take_memory(bytes);
    return true;
}

// The buffer's bytes go behind those of the file.
bool RunSpool::flush() {
    if (!file_.open()) {
        auto made = os::open_at(room_.directory_, name_, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (!made) return false;
        file_ = std::move(*made);
    }
    if (!write_to_file(buffer_, {})) return false;
    room_.give_memory(buffer_.size());
    buffer_.clear();
    buffer_.shrink_to_fit();
    return true;
}

bool RunSpool::make_room(uint64_t bytes) const {
    while (room_.in_files_ + bytes > room_.files_max_) {
        if (!room_.drop_oldest || !room_.drop_oldest()) return false;
    }
    return true;
}

bool RunSpool::write_to_file(std::string_view first, std::initializer_list<std::string_view> rest) {
    const size_t bytes = first.size() + size_of(rest);
    if (!make_room(bytes)) return false;
    for (;;) {
        const Result<void> written = write_at_end(first, rest);
        if (written) break;
        if (!is_full(written.error()) || !room_.drop_oldest || !room_.drop_oldest()) return false;
    }
    file_bytes_ += bytes;
    room_.in_files_ += bytes;
    start_writing_back();
    return true;
}

// A failure leaves bytes behind the end, which the next write overwrites.
Result<void> RunSpool::write_at_end(std::string_view first,
                                    std::initializer_list<std::string_view> rest) {
    uint64_t place = file_bytes_;
    TRY_OK(write_at(file_, place, first));
    place += first.size();
    for (const std::string_view part : rest) {
        TRY_OK(write_at(file_, place, part));
        place += part.size();
    }
    return {};
}

void RunSpool::start_writing_back() {
    if (file_bytes_ - written_back_ < kWriteBackStep) return;
    // Only hints: without them the kernel does the same, later.
    (void)::posix_fadvise(file_.get(), 0, static_cast<off_t>(written_back_), POSIX_FADV_DONTNEED);
    (void)::sync_file_range(file_.get(), static_cast<off_t>(written_back_),
                            static_cast<off_t>(file_bytes_ - written_back_), SYNC_FILE_RANGE_WRITE);
    written_back_ = file_bytes_;
}

Result<std::string> RunSpool::read(uint64_t place, size_t most) const {
    if (place >= file_bytes_) {
        const size_t at = std::min<uint64_t>(place - file_bytes_, buffer_.size());
        return buffer_.substr(at, most);
    }
    std::string bytes(std::min<uint64_t>(most, file_bytes_ - place), '\0');
    ssize_t got = 0;
    do {
        got = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(place));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return last_os_failure("reading a spool");
    if (got == 0) return make_error(ErrorKind::Internal, "a spool is shorter than what was kept");
    bytes.resize(static_cast<size_t>(got));
    return bytes;
}

void RunSpool::drop() {
    room_.give_memory(buffer_.size());
    room_.in_files_ -= file_bytes_;
    if (file_.open()) ::unlinkat(room_.directory_.get(), name_.c_str(), 0);
    file_.reset();
    file_bytes_ = written_back_ = 0;
    buffer_ = {};
    output_ = {};
    marks_.clear();
    lost_.frames += std::exchange(kept_.frames, 0);
    lost_.bytes += std::exchange(kept_.bytes, 0);
}

}  // namespace cloister::agent
