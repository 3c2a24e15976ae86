#include "programs/agent/file_entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/json_text.h"
#include "base/limits.h"
#include "os/resolve.h"
#include "programs/agent/file_place.h"

namespace cloister::agent {
namespace {

constexpr std::string_view kPrefix = "user.cloister.";
constexpr size_t kAttributesMax = 64 * limits::kKiB;  // the kernel's own limit

std::string name_of(uid_t id) {
    if (id == 0) return "root";
    return id == limits::kUserId ? "user" : std::to_string(id);
}

uint64_t nanoseconds(const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

enum class Follow { Yes, No };

// Names of attributes with our prefix. `path`: of /proc, or below it.
std::vector<std::string> metadata_names(const std::string& path, Follow follow) {
    std::array<char, kAttributesMax> list{};
    const auto call = follow == Follow::Yes ? ::listxattr : ::llistxattr;
    const ssize_t size = call(path.c_str(), list.data(), list.size());
    std::vector<std::string> names;
    std::string_view rest(list.data(), size > 0 ? static_cast<size_t>(size) : 0);
    while (!rest.empty()) {
        const std::string_view name = rest.substr(0, rest.find('\0'));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        if (name.starts_with(kPrefix)) names.emplace_back(name);
    }
    return names;
}

std::string value_of(const std::string& path, const std::string& name, Follow follow) {
    std::array<char, limits::kPathMax> value{};
    const auto call = follow == Follow::Yes ? ::getxattr : ::lgetxattr;
    const ssize_t size = call(path.c_str(), name.c_str(), value.data(), value.size());
    return {value.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

std::string metadata_json(const std::string& path, Follow follow) {
    std::string out;
    for (const std::string& name : metadata_names(path, follow)) {
        out += fmt::format("{}{}:{}", out.empty() ? "" : ",",
                           json_quote(std::string_view(name).substr(kPrefix.size())),
                           json_quote(value_of(path, name, follow)));
    }
    return out;
}

std::string facts(const std::string& path, const struct stat& about) {
    return fmt::format(
        R"({{"path":{},"type":"{}","size":{},"mode":{},"uid":{},"gid":{},"user":"{}","group":"{}",)"
        R"("modified_ms":{},"etag":"{}")",
        json_quote(path), type_of(about.st_mode), S_ISREG(about.st_mode) ? about.st_size : 0,
        about.st_mode & 07777, about.st_uid, about.st_gid, name_of(about.st_uid),
        name_of(about.st_gid), nanoseconds(about.st_mtim) / 1'000'000, etag_of(about));
}

std::string link_facts(const os::Fd& directory, const std::string& name) {
    std::array<char, limits::kPathMax> target{};
    const ssize_t got = ::readlinkat(directory.get(), name.c_str(), target.data(), target.size());
    if (got < 0) return {};
    std::string out =
        fmt::format(R"(,"target":{})", json_quote({target.data(), static_cast<size_t>(got)}));
    struct stat behind{};
    if (::fstatat(directory.get(), name.c_str(), &behind, 0) == 0)
        out += fmt::format(R"(,"target_type":"{}")", type_of(behind.st_mode));
    return out;
}

std::string with_metadata(std::string text, const std::string& path, Follow follow) {
    const std::string metadata = metadata_json(path, follow);
    if (!metadata.empty()) text += fmt::format(R"(,"metadata":{{{}}})", metadata);
    return text + "}";
}

}  // namespace

std::string etag_of(const struct stat& about) {
    return fmt::format("{:x}-{:x}-{:x}-{:x}", about.st_ino, about.st_size,
                       nanoseconds(about.st_mtim), nanoseconds(about.st_ctim));
}

std::string_view type_of(mode_t mode) {
    if (S_ISREG(mode)) return "file";
    if (S_ISDIR(mode)) return "directory";
    if (S_ISLNK(mode)) return "symlink";
    if (S_ISFIFO(mode)) return "fifo";
    return S_ISSOCK(mode) ? "socket" : "device";
}

std::string describe(const os::Fd& directory, const std::string& name, const std::string& path,
                     const struct stat& about) {
    std::string text = facts(path, about);
    if (S_ISLNK(about.st_mode)) return text + link_facts(directory, name) + "}";
    return with_metadata(std::move(text), os::path_of(directory) + "/" + name, Follow::No);
}

Result<std::string> describe_open(const os::Fd& file, const std::string& path) {
    struct stat about{};
    if (::fstat(file.get(), &about) != 0) return path_failure("looking at", path, errno);
    return with_metadata(facts(path, about), os::path_of(file), Follow::Yes);
}

Result<void> set_metadata(const os::Fd& file, const std::string& path, const StringMap& metadata) {
    const std::string there = os::path_of(file);
    for (const std::string& name : metadata_names(there, Follow::Yes)) {
        if (metadata.contains(name.substr(kPrefix.size()))) continue;
        if (::removexattr(there.c_str(), name.c_str()) != 0)
            return path_failure("changing the metadata of", path, errno);
    }
    for (const auto& [key, value] : metadata) {
        const std::string name = std::string(kPrefix) + key;
        if (::setxattr(there.c_str(), name.c_str(), value.data(), value.size(), 0) != 0)
            return path_failure("changing the metadata of", path, errno);
    }
    return {};
}

void copy_metadata(const os::Fd& from, const os::Fd& to) {
    const std::string source = os::path_of(from), target = os::path_of(to);
    for (const std::string& name : metadata_names(source, Follow::Yes)) {
        const std::string value = value_of(source, name, Follow::Yes);
        // A file system without attributes has the file all the same.
        (void)::setxattr(target.c_str(), name.c_str(), value.data(), value.size(), 0);
    }
}

}  // namespace cloister::agent
