#include "programs/cli/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

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

uint64_t log_size(const std::string& path) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(path, missing);
    return missing ? 0 : size;
}

std::string log_since(const std::string& path, uint64_t place, size_t max_bytes) {
    const auto file = os::open_file(path, O_RDONLY);
    const uint64_t size = log_size(path);
    if (!file || size < place) return {};  // it has been set aside meanwhile
    const bool is_cut = size - place > max_bytes;
    ::lseek(file->get(), static_cast<off_t>(is_cut ? size - max_bytes : place), SEEK_SET);
    std::string text = os::read_all(*file, max_bytes + limits::kMiB).value_or("");
    if (is_cut) text.erase(0, text.find('\n') + 1);  // the rest of a line
    return text;
}

}  // namespace cloister::cli
