#include "os/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/time.h"

namespace cloister::os {

void Fd::reset(int number) {
    if (number_ >= 0) ::close(number_);
    number_ = number;
}

Result<Fd> Fd::duplicate() const {
    Fd copy(::fcntl(number_, F_DUPFD_CLOEXEC, 3));
    if (!copy.open()) return last_os_failure("duplicating a descriptor");
    return copy;
}

Result<Pipe> make_pipe(Blocking blocking) {
    std::array<int, 2> ends{};
    const int flags = O_CLOEXEC | (blocking == Blocking::No ? O_NONBLOCK : 0);
    if (::pipe2(ends.data(), flags) != 0) return last_os_failure("making a pipe");
    return Pipe{.read = Fd(ends[0]), .write = Fd(ends[1])};
}

Result<Fd> open_file(const std::string& path, int flags, mode_t mode) {
    Fd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
    if (!fd.open()) return last_os_failure("opening " + path);
    return fd;
}

Result<Fd> open_at(const Fd& directory, const std::string& name, int flags, mode_t mode) {
    Fd fd(::openat(directory.get(), name.c_str(), flags | O_CLOEXEC, mode));
    if (!fd.open()) return last_os_failure("opening " + name);
    return fd;
}

Result<std::string> read_all(const Fd& fd, size_t max_bytes) {
    std::string out;
    std::array<char, 16384> chunk{};
    for (;;) {
        const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return last_os_failure("reading");
        if (got == 0) return out;
        out.append(chunk.data(), static_cast<size_t>(got));
        if (out.size() > max_bytes) {
            return make_error(ErrorKind::TooLarge,
                              "more than " + std::to_string(max_bytes) + " bytes");
        }
    }
}

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
    const Fd fd = TRY(open_file(path, O_RDONLY));
    auto text = read_all(fd, max_bytes);
    if (!text) return std::move(text).error().within(path);
    return text;
}

Result<void> write_all(const Fd& fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(fd.get(), bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return last_os_failure("writing");
        bytes.remove_prefix(static_cast<size_t>(put));
    }
    return {};
}

Result<void> write_file_atomically(const std::string& path, std::string_view bytes, mode_t mode) {
    const std::string temporary = path + ".new";
    Fd fd = TRY(open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
    TRY_OK(write_all(fd, bytes));
    if (::fchmod(fd.get(), mode) != 0) return last_os_failure("setting the mode of " + temporary);
    if (::fsync(fd.get()) != 0) return last_os_failure("syncing " + temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0)
        return last_os_failure("renaming to " + path);
    return {};
}

Result<bool> wait_readable(const Fd& fd, int64_t timeout_ms) {
    const int64_t deadline = steady_ms() + timeout_ms;
    for (;;) {
        pollfd entry{.fd = fd.get(), .events = POLLIN, .revents = 0};
        const int64_t left = deadline - steady_ms();
        const int ready = ::poll(&entry, 1, static_cast<int>(left > 0 ? left : 0));
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0) return last_os_failure("waiting for a descriptor");
        return ready > 0;
    }
}

Result<void> set_blocking(const Fd& fd, Blocking blocking) {
    const int flags = ::fcntl(fd.get(), F_GETFL);
    const int wanted = blocking == Blocking::No ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    if (flags < 0 || ::fcntl(fd.get(), F_SETFL, wanted) != 0) {
        return last_os_failure("setting a descriptor's mode");
    }
    return {};
}

}  // namespace cloister::os
