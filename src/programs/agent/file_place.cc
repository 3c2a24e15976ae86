#include "programs/agent/file_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/limits.h"
#include "os/resolve.h"

namespace cloister::agent {
namespace {

// "/a/b/" → "/a" and "b"; "/" and what ends with a dot: itself and ".".
struct Split {
    std::string parent, name;
};
Split split(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    const size_t slash = path.rfind('/');
    std::string name = path.substr(slash + 1);
    if (name.empty() || name == "." || name == "..") return {.parent = path, .name = "."};
    return {.parent = slash == 0 ? "/" : path.substr(0, slash), .name = std::move(name)};
}

std::string real_path(const os::Fd& file) {
    std::array<char, limits::kPathMax> target{};
    const ssize_t got = ::readlink(os::path_of(file).c_str(), target.data(), target.size());
    return got > 0 ? std::string(target.data(), static_cast<size_t>(got)) : std::string();
}

ErrorKind kind_of(int error) {
    switch (error) {
        case ENOENT:
            return ErrorKind::NotFound;
        case EACCES:
        case EPERM:
        case EROFS:
            return ErrorKind::PermissionDenied;
        case EEXIST:
            return ErrorKind::AlreadyExists;
        case ENOTEMPTY:
            return ErrorKind::FailedPrecondition;
        case EISDIR:
        case ENOTDIR:
        case ELOOP:
        case ENAMETOOLONG:
        case ENXIO:
        case EINVAL:
        case EXDEV:
        case EBUSY:
        case ETXTBSY:
        case EOPNOTSUPP:
            return ErrorKind::InvalidArgument;
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
        case EMFILE:
        case ENOMEM:
        case EMLINK:
            return ErrorKind::ResourceExhausted;
        case EAGAIN:
            return ErrorKind::Unavailable;
        default:
            return ErrorKind::Internal;
    }
}

}  // namespace

Error path_failure(std::string_view what, const std::string& path, int error) {
    return Error{
        .kind = kind_of(error),
        .message = fmt::format("{} {}: {}", what, path, std::generic_category().message(error)),
        .field = "path",
        .os_error = error};
}

Error path_failure(std::string_view what, const std::string& path, const Error& error) {
    return error.os_error == 0 ? error : path_failure(what, path, error.os_error);
}

std::string joined(const std::string& directory, const std::string& inner) {
    std::string out = directory;
    while (out.ends_with('/') || out.ends_with("/.")) out.pop_back();
    return inner.empty() && !out.empty() ? out : out + "/" + inner;
}

Result<std::optional<struct stat>> look_at(const Place& place) {
    struct stat about{};
    if (::fstatat(place.directory.get(), place.name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0)
        return about;
    if (errno == ENOENT) return std::nullopt;
    return path_failure("looking at", place.path, errno);
}

Result<FileRoot> FileRoot::create() {
    return FileRoot(TRY(os::open_file("/", O_PATH | O_DIRECTORY)));
}

Result<os::Fd> FileRoot::open(const std::string& path, int flags) const {
    auto opened = os::open_in_root(root_, path, flags);
    if (!opened) return path_failure("opening", path, opened.error());
    return opened;
}

Result<os::Fd> FileRoot::open_directory(const std::string& path) const {
    return open(path, O_RDONLY | O_DIRECTORY);
}

Result<Place> FileRoot::locate(const std::string& path) const {
    Split parts = split(path);
    auto directory = os::open_in_root(root_, parts.parent, O_PATH | O_DIRECTORY);
    if (!directory) return path_failure("opening", path, directory.error());
    return Place{.directory = std::move(*directory), .name = std::move(parts.name), .path = path};
}

Result<Place> FileRoot::locate_or_make(const std::string& path) const {
    Split parts = split(path);
    os::Fd directory = TRY(directory_or_make(parts.parent));
    return Place{.directory = std::move(directory), .name = std::move(parts.name), .path = path};
}

// As deep as the path has parts, which its length bounds.
Result<os::Fd> FileRoot::directory_or_make(const std::string& path) const {
    auto there = os::open_in_root(root_, path, O_PATH | O_DIRECTORY);
    if (there) return there;
    const int error = there.error().os_error;
    const Split parts = split(path);
    if (error != ENOENT || parts.name == ".") {
        return path_failure("making the directory", path, error);
    }
    const os::Fd parent = TRY(directory_or_make(parts.parent));
    if (::mkdirat(parent.get(), parts.name.c_str(), 0755) != 0 && errno != EEXIST) {
        return path_failure("making the directory", path, errno);
    }
    there = os::open_in_root(root_, path, O_PATH | O_DIRECTORY);
    if (!there) return path_failure("making the directory", path, there.error());
    return there;
}

Result<Place> FileRoot::locate_for_write(const std::string& path) const {
    Place place = TRY(locate_or_make(path));
    const auto about = TRY(look_at(place));
    if (!about || S_ISREG(about->st_mode)) return place;
    if (S_ISDIR(about->st_mode)) return path_failure("writing", path, EISDIR);
    if (!S_ISLNK(about->st_mode)) {
        return invalid_field("path", path + " is no regular file: only such files are written");
    }
    const auto target = os::open_in_root(root_, path, O_PATH);
    if (!target && target.error().os_error == ENOENT) return place;  // it replaces the link
    if (!target) return path_failure("writing", path, target.error());
    struct stat behind{};
    if (::fstat(target->get(), &behind) != 0) return path_failure("writing", path, errno);
    if (S_ISDIR(behind.st_mode)) return path_failure("writing", path, EISDIR);
    if (!S_ISREG(behind.st_mode)) {
        return invalid_field("path", path + " leads to no regular file: only such are written");
    }
    Place real = TRY(locate(real_path(*target)));
    real.path = path;
    return real;
}

}  // namespace cloister::agent
