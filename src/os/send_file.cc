#include "os/send_file.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>

namespace cloister::os {
namespace {

constexpr long kProcMagic = 0x9fa0;  // linux/magic.h
constexpr uint64_t kStepMax = 1 << 30;

}  // namespace

Result<uint64_t> send_file(int socket, const Fd& file, uint64_t offset, uint64_t length) {
    auto at = static_cast<off_t>(offset);
    ssize_t put = 0;
    do {
        put = ::sendfile(socket, file.get(), &at, std::min(length, kStepMax));
    } while (put < 0 && errno == EINTR);
    if (put < 0 && errno == EAGAIN) return 0;
    if (put < 0) return last_os_failure("sending a file");
    if (put == 0) return make_error(ErrorKind::TooLarge, "the file has become shorter");
    return static_cast<uint64_t>(put);
}

Result<uint64_t> size_to_send(const Fd& file) {
    struct stat about{};
    struct statfs system{};
    if (::fstat(file.get(), &about) != 0 || ::fstatfs(file.get(), &system) != 0)
        return last_os_failure("looking at a file");
    const int flags = ::fcntl(file.get(), F_GETFL);
    const bool readable = flags >= 0 && (flags & (O_ACCMODE | O_PATH)) == O_RDONLY;
    if (!S_ISREG(about.st_mode) || system.f_type == kProcMagic || !readable) {
        return make_error(ErrorKind::InvalidArgument, "this is no file to be sent");
    }
    return static_cast<uint64_t>(about.st_size);
}

}  // namespace cloister::os
