#include "programs/cli/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/limits.h"

namespace cloister::cli {
namespace {

constexpr int64_t kLogMax = 16 * limits::kMiB;

}  // namespace

Result<LogFile> LogFile::open(std::string path) {
    LogFile log(std::move(path));
    TRY_OK(log.take_standard_error());
    return log;
}

Result<void> LogFile::take_standard_error() {
    const os::Fd file = TRY(os::open_file(path_, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
    if (::dup2(file.get(), STDERR_FILENO) < 0 || ::dup2(file.get(), STDOUT_FILENO) < 0) {
        return last_os_failure("writing to the log");
    }
    return {};
}

void LogFile::append(std::string_view bytes) {
    if (::lseek(STDERR_FILENO, 0, SEEK_END) > kLogMax) {
        std::rename(path_.c_str(), (path_ + ".1").c_str());
        (void)take_standard_error();  // without a new file the old one goes on
    }
    std::fwrite(bytes.data(), 1, bytes.size(), stderr);
}

std::string log_tail(const std::string& path, size_t max_bytes) {
    const auto file = os::open_file(path, O_RDONLY);
    if (!file) return {};
    const off_t size = ::lseek(file->get(), 0, SEEK_END);
    const off_t begin = std::max<off_t>(0, size - static_cast<off_t>(max_bytes));
    ::lseek(file->get(), begin, SEEK_SET);
    std::string text = os::read_all(*file, max_bytes + limits::kMiB).value_or("");
    if (begin > 0) text.erase(0, text.find('\n') + 1);  // the first line is cut
    return text;
}

}  // namespace cloister::cli
