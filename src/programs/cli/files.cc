#include "programs/cli/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "base/number.h"
#include "programs/cli/settings.h"

namespace cloister::cli {
namespace {

namespace fs = std::filesystem;

std::optional<uid_t> number_in(const char* variable) {
    return whole_number<uid_t>(environment(variable));
}

Result<void> give_to_caller(const std::string& path) {
    const auto uid = number_in("SUDO_UID"), gid = number_in("SUDO_GID");
    if (::geteuid() != 0 || !uid || !gid) return {};
    if (::lchown(path.c_str(), *uid, *gid) != 0)
        return last_os_failure("giving " + path + " to its user");
    return {};
}

Result<void> make_directories(const fs::path& directory) {
    std::error_code failure;
    std::vector<fs::path> missing;
    for (fs::path at = directory; !at.empty() && !fs::exists(at, failure); at = at.parent_path())
        missing.push_back(at);
    for (auto it = missing.rbegin(); it != missing.rend(); ++it) {
        fs::create_directory(*it, failure);
        if (failure) return os_failure("making the directory " + it->string(), failure.value());
        TRY_OK(give_to_caller(it->string()));
    }
    return {};
}

}  // namespace

Result<os::Fd> create_file(const std::string& path) {
    TRY_OK(make_directories(fs::path(path).parent_path()));
    auto file = os::open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
    if (!file && file.error().os_error == ELOOP) {
        return make_error(ErrorKind::AlreadyExists,
                          path + " is a symbolic link, which is not written through: remove it");
    }
    if (!file) return file;
    TRY_OK(give_to_caller(path));
    return file;
}

Result<void> save_file(const std::string& path, std::string_view bytes) {
    const os::Fd file = TRY(create_file(path));
    return os::write_all(file, bytes);
}

bool is_directory(const std::string& path) {
    std::error_code failure;
    return fs::is_directory(path, failure);
}

std::string path_below_home(std::string_view sandbox_path) {
    constexpr std::string_view kHome = "/home/user/";
    if (sandbox_path.starts_with(kHome)) sandbox_path.remove_prefix(kHome.size());
    while (sandbox_path.starts_with('/')) sandbox_path.remove_prefix(1);
    const fs::path relative(sandbox_path);
    for (const fs::path& part : relative) {
        if (part == "..") return {};
    }
    return relative.lexically_normal().string();
}

Result<FileSource> FileSource::open(const std::string& path) {
    auto file = os::open_file(path, O_RDONLY);
    if (!file && file.error().os_error == ENOENT)
        return make_error(ErrorKind::NotFound, "there is no file " + path);
    if (!file) return std::move(file).error();
    if (is_directory(path))
        return make_error(ErrorKind::InvalidArgument, path + " is a directory: name its files");
    FileSource source(std::move(*file));
    std::error_code failure;
    if (!fs::is_regular_file(path, failure)) return source;
    source.size_ = fs::file_size(path, failure);
    source.mode_ = static_cast<uint32_t>(fs::status(path, failure).permissions()) & 0777;
    return source;
}

Result<FileSource> FileSource::standard_input() {
    os::Fd input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!input.open()) return last_os_failure("reading standard input");
    return FileSource(std::move(input));
}

Result<std::string> FileSource::next() {
    std::string piece(limits::kStreamChunk, '\0');
    ssize_t got = 0;
    do {
        got = ::read(file_.get(), piece.data(), piece.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return last_os_failure("reading a file");
    piece.resize(static_cast<size_t>(got));
    return piece;
}

}  // namespace cloister::cli
