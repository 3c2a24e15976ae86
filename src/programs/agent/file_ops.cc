#include "programs/agent/file_ops.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/ids.h"
#include "base/limits.h"
#include "programs/agent/answers.h"
#include "programs/agent/buffers.h"
#include "programs/agent/changed_files.h"
#include "wire/frame.h"

namespace cloister::agent {
namespace {

namespace fs = std::filesystem;

// What a failed call says about the caller's path.
Error path_failure(std::string_view what, const std::string& path, int error) {
    const auto about = [&](ErrorKind kind) {
        return Error{
            .kind = kind,
            .message = fmt::format("{} {}: {}", what, path, std::generic_category().message(error)),
            .field = "path",
            .os_error = error};
    };
    switch (error) {
        case ENOENT:
            return about(ErrorKind::NotFound);
        case EACCES:
        case EPERM:
        case EROFS:
            return about(ErrorKind::PermissionDenied);
        case EISDIR:
        case ENOTDIR:
        case ELOOP:
        case ENAMETOOLONG:
        case ENXIO:
            return about(ErrorKind::InvalidArgument);
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
            return about(ErrorKind::ResourceExhausted);
        default:
            return about(ErrorKind::Internal);
    }
}

Result<void> send(const os::Fd& connection, FrameKind kind, std::string_view payload) {
    std::string bytes;
    append_frame(bytes, kind, payload);
    return os::write_all(connection, bytes);
}

// --- Reading ---

Result<os::Fd> open_regular(const std::string& path, struct stat& about) {
    // Without waiting: opening a pipe would wait for its writer.
    os::Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file.open()) return path_failure("opening", path, errno);
    if (::fstat(file.get(), &about) != 0) return path_failure("reading", path, errno);
    if (S_ISDIR(about.st_mode)) return path_failure("reading", path, EISDIR);
    if (!S_ISREG(about.st_mode)) {
        return invalid_field("path", path + " is no regular file: only such files can be read");
    }
    return file;
}

Result<void> send_file(const os::Fd& file, const FileRead& request, const os::Fd& connection) {
    std::string chunk(limits::kStreamChunk, '\0');
    uint64_t left = request.length.value_or(UINT64_MAX);
    auto at = static_cast<off_t>(request.offset);
    while (left > 0) {
        const size_t wanted = std::min<uint64_t>(left, chunk.size());
        const ssize_t got = ::pread(file.get(), chunk.data(), wanted, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return path_failure("reading", request.path, errno);
        if (got == 0) break;
        TRY_OK(send(connection, FrameKind::Data,
                    std::string_view(chunk).substr(0, static_cast<size_t>(got))));
        left -= static_cast<uint64_t>(got);
        at += got;
    }
    return send(connection, FrameKind::Data, {});
}

int64_t milliseconds(const timespec& time) {
    return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
}

Result<void> read_file_to(const FileRead& request, const os::Fd& connection) {
    struct stat about{};
    const os::Fd file = TRY(open_regular(request.path, about));
    const std::string fields = fmt::format(R"("size":{},"mode":{},"modified_ms":{})", about.st_size,
                                           about.st_mode & 07777, milliseconds(about.st_mtim));
    TRY_OK(send(connection, FrameKind::Json, ok_answer(fields)));
    return send_file(file, request, connection);
}

// --- Writing ---

bool is_after(const timespec& a, const timespec& b) {
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

// A file beside the target; removed unless it was put into the target's place.
class Replacement {
  public:
    static Result<Replacement> create(const FileWrite& request) {
        const fs::path target(request.path);
        std::error_code failure;
        if (fs::is_directory(target, failure)) return path_failure("writing", target, EISDIR);
        fs::create_directories(target.parent_path(), failure);
        if (failure) {
            return path_failure("making the directory of", request.path, failure.value());
        }
        Replacement file(target, target.parent_path() / (".cloister-" + new_id()));
        file.fd_ = os::Fd(::open(file.temporary_.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file.fd_.open()) return path_failure("writing", request.path, errno);
        return file;
    }
    Replacement(Replacement&& other) noexcept
        : target_(std::move(other.target_)),
          temporary_(std::exchange(other.temporary_, {})),
          fd_(std::move(other.fd_)) {}
    ~Replacement() {
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
    }

    Result<void> append(std::string_view bytes) const {
        const auto written = os::write_all(fd_, bytes);
        if (!written) return path_failure("writing", target_, written.error().os_error);
        return {};
    }
    Result<void> commit(mode_t mode) {
        if (::fchmod(fd_.get(), mode) != 0) return path_failure("writing", target_, errno);
        if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
            return path_failure("writing", target_, errno);
        }
        temporary_.clear();
        wait_for_the_next_tick();
        return {};
    }

  private:
    // A run that begins next must not take this file for one of its own: file times are no finer
    // than the kernel's tick, so let that go by.
    void wait_for_the_next_tick() const {
        struct stat about{};
        if (::fstat(fd_.get(), &about) != 0) return;
        for (int tries = 0; tries < 20 && !is_after(file_clock_now(), about.st_ctim); ++tries) {
            const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
            ::nanosleep(&millisecond, nullptr);
        }
    }

    Replacement(fs::path target, fs::path temporary)
        : target_(target.string()), temporary_(temporary.string()) {}
    std::string target_, temporary_;
    os::Fd fd_;
};

// The next data frame's bytes; Cancelled if the client went away.
Result<HeldMessage> next_data(MessageReader& reader, const os::Fd& connection) {
    if (TRY(reader.read(connection)) != ReadState::Whole) {
        return make_error(ErrorKind::Cancelled, "the connection broke before the end of the file");
    }
    HeldMessage frame = reader.take();
    if (frame->bytes[0] != static_cast<char>(FrameKind::Data)) {
        return make_error(ErrorKind::InvalidArgument, "only data frames may follow file.write");
    }
    return frame;
}

Result<void> write_file_from(const FileWrite& request, const os::Fd& connection) {
    Replacement file = TRY(Replacement::create(request));
    TRY_OK(send(connection, FrameKind::Json, ok_answer()));
    Budget budget(limits::kAgentRequestMax);
    MessageReader reader(budget, limits::kAgentRequestMax);
    uint64_t size = 0;
    for (;;) {
        const HeldMessage frame = TRY(next_data(reader, connection));
        const std::string_view bytes = std::string_view(frame->bytes).substr(1);
        if (bytes.empty()) break;
        TRY_OK(file.append(bytes));
        size += bytes.size();
    }
    TRY_OK(file.commit(request.mode));
    return send(connection, FrameKind::Json, ok_answer(fmt::format(R"("size":{})", size)));
}

// After a failure: a client in the middle of sending would otherwise lose the answer to it.
void discard_rest(const os::Fd& connection) {
    ::alarm(5);  // the default of SIGALRM ends this process
    std::array<char, limits::kStreamChunk> rest{};
    while (::read(connection.get(), rest.data(), rest.size()) > 0) {
    }
}

void answer_failure(const Result<void>& result, const os::Fd& connection) {
    if (result) return;
    if (!send(connection, FrameKind::Json, error_answer(result.error()))) return;
    ::shutdown(connection.get(), SHUT_WR);
    discard_rest(connection);
}

}  // namespace

void serve_read(const FileRead& request, const os::Fd& connection) {
    answer_failure(read_file_to(request, connection), connection);
}

void serve_write(const FileWrite& request, const os::Fd& connection) {
    answer_failure(write_file_from(request, connection), connection);
}

}  // namespace cloister::agent
