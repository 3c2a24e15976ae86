#include "os/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "os/resolve.h"

// The kernel's number (linux/fs.h), whose header and the C library's do not go together.
#ifndef FICLONE
#define FICLONE _IOW(0x94, 9, int)
#endif

namespace cloister::os {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;
constexpr size_t kNamesMax = 2'000'000;  // of one directory: they are sorted in memory
// Directories deeper than this are moved up before they are removed, so that descriptors suffice.
constexpr int kRemoveDepth = 64;
// Whoever fills a directory while it is removed does not hold us for ever. Each round at the top
// takes away kRemoveDepth levels.
constexpr int kRemoveRounds = 32;
constexpr int kRemoveRoundsAtTop = 100'000;

struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

Result<std::vector<std::string>> names_in(const Fd& held) {
    Fd directory = TRY(open_at(held, ".", O_RDONLY | O_DIRECTORY));
    const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(directory.get()));
    if (!stream) return last_os_failure("reading a directory");
    (void)directory.release();  // the stream closes it
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(stream.get())) {
        const std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        if (names.size() == kNamesMax) {
            return make_error(ErrorKind::TooLarge, "a directory has too many entries");
        }
        names.emplace_back(name);
    }
    return names;
}

class Walk {
  public:
    Walk(const TreeBounds& bounds, const std::function<Result<Visit>(const TreeEntry&)>& visit)
        : bounds_(bounds), visit_(visit) {}

    // False when it was stopped.
    Result<bool> directory(const Fd& directory, const std::string& path, int depth) {
        std::vector<std::string> names = TRY(names_in(directory));
        std::ranges::sort(names);
        for (std::string& name : names) {
            TreeEntry entry{.directory = directory,
                            .name = std::move(name),
                            .path = path.empty() ? path : path + "/",
                            .about = {},
                            .depth = depth};
            entry.path += entry.name;
            // What is gone meanwhile was not there.
            if (::fstatat(directory.get(), entry.name.c_str(), &entry.about, AT_SYMLINK_NOFOLLOW) !=
                0)
                continue;
            if (!TRY(this->entry(entry))) return false;
        }
        return true;
    }

  private:
    Result<bool> entry(const TreeEntry& entry) {
        if (++seen_ > bounds_.entries_max) {
            return make_error(ErrorKind::TooLarge, "the directory holds more than " +
                                                       std::to_string(bounds_.entries_max) +
                                                       " entries");
        }
        const Visit next = TRY(visit_(entry));
        if (next == Visit::Stop) return false;
        if (next == Visit::Skip || !S_ISDIR(entry.about.st_mode)) return true;
        if (entry.depth >= bounds_.depth_max) {
            if (bounds_.too_deep == TreeBounds::TooDeep::Ignore) return true;
            return make_error(ErrorKind::TooLarge, entry.path + " is nested too deep");
        }
        return descend(entry);
    }

    Result<bool> descend(const TreeEntry& entry) {
        const auto inner = open_at(entry.directory, entry.name, kDirectory);
        if (inner) return directory(*inner, entry.path, entry.depth + 1);
        const int error = inner.error().os_error;
        // Gone or replaced meanwhile: what was there is not there any more.
        if (error == ENOENT || error == ENOTDIR || error == ELOOP) return true;
        if (bounds_.unreadable == TreeBounds::Unreadable::Skip && error == EACCES) return true;
        return os_failure("reading the directory " + entry.path, error);
    }

    const TreeBounds& bounds_;
    const std::function<Result<Visit>(const TreeEntry&)>& visit_;
    uint64_t seen_ = 0;
};

// --- Removing ---

class Removal {
  public:
    explicit Removal(const Fd& top) : top_(top) {}

    Result<void> entry(const Fd& directory, const std::string& name, int depth) {
        if (::unlinkat(directory.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
        if (errno != EISDIR && errno != EPERM) return failed(name, errno);
        const int unlinked = errno;
        const int rounds = depth == 1 ? kRemoveRoundsAtTop : kRemoveRounds;
        for (int round = 0; round < rounds; ++round) {
            if (::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT)
                return {};
            if (errno == ENOTDIR) return failed(name, unlinked);
            if (errno != ENOTEMPTY && errno != EEXIST) return failed(name, errno);
            TRY_OK(empty(directory, name, depth));
        }
        return failed(name, ENOTEMPTY);
    }

  private:
    static Error failed(const std::string& name, int error) {
        return os_failure("removing " + name, error);
    }

    Result<void> empty(const Fd& directory, const std::string& name, int depth) {
        const auto inner = open_at(directory, name, kDirectory);
        if (!inner) return failed(name, inner.error().os_error);
        const std::vector<std::string> names = TRY(names_in(*inner));
        for (const std::string& each : names) {
            if (depth >= kRemoveDepth && move_up(*inner, each)) continue;
            TRY_OK(entry(*inner, each, depth + 1));
        }
        return {};
    }

    // A directory goes to the top of what is removed, which is looked at again.
    bool move_up(const Fd& directory, const std::string& name) {
        struct stat about{};
        if (::fstatat(directory.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(about.st_mode))
            return false;
        if (!holder_.open()) return false;
        const std::string there = ".cloister-removed-" + std::to_string(++moved_);
        return ::renameat2(directory.get(), name.c_str(), holder_.get(), there.c_str(),
                           RENAME_NOREPLACE) == 0;
    }

  public:
    // Where deep directories are moved to: the tree's own top.
    Result<void> whole(const std::string& name) {
        if (auto opened = open_at(top_, name, kDirectory)) holder_ = std::move(*opened);
        return entry(top_, name, 1);
    }

  private:
    const Fd& top_;
    Fd holder_;
    uint64_t moved_ = 0;
};

// --- Merging ---

std::vector<std::string> parts_of(const std::string& path) {
    std::vector<std::string> parts;
    size_t at = 0;
    while (at <= path.size()) {
        const size_t end = std::min(path.find('/', at), path.size());
        parts.push_back(path.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

bool is_directory_at(const Fd& directory, const std::string& name, bool& exists) {
    struct stat about{};
    exists = ::fstatat(directory.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0;
    return exists && S_ISDIR(about.st_mode);
}

// Whether everything of `from` can go into `into`.
Result<void> check_merge(const Fd& from, const Fd& into) {
    const std::vector<std::string> names = TRY(names_in(from));
    for (const std::string& name : names) {
        bool exists = false, ours = false;
        const bool directory = is_directory_at(from, name, ours);
        const bool directory_there = is_directory_at(into, name, exists);
        if (exists && directory_there && !directory) {
            return make_error(ErrorKind::FailedPrecondition,
                              name + " is a directory, and would have to be replaced by a file");
        }
        if (!directory || !directory_there) continue;
        const Fd inner = TRY(open_at(from, name, kDirectory));
        const Fd inner_there = TRY(open_at(into, name, kDirectory));
        TRY_OK(check_merge(inner, inner_there));
    }
    return {};
}

Result<void> move_in(const Fd& from, const Fd& into) {
    const std::vector<std::string> names = TRY(names_in(from));
    for (const std::string& name : names) {
        bool exists = false, ours = false;
        const bool directory = is_directory_at(from, name, ours);
        const bool directory_there = is_directory_at(into, name, exists);
        if (directory && directory_there) {
            const Fd inner = TRY(open_at(from, name, kDirectory));
            const Fd inner_there = TRY(open_at(into, name, kDirectory));
            TRY_OK(move_in(inner, inner_there));
            continue;
        }
        // A directory cannot be renamed over a file or a link.
        if (directory && exists) ::unlinkat(into.get(), name.c_str(), 0);
        if (::renameat(from.get(), name.c_str(), into.get(), name.c_str()) != 0) {
            return last_os_failure("putting " + name + " into its place");
        }
    }
    return {};
}

}  // namespace

Result<void> walk_tree(const Fd& top, const TreeBounds& bounds,
                       const std::function<Result<Visit>(const TreeEntry&)>& visit) {
    const Fd opened = TRY(open_at(top, ".", O_RDONLY | O_DIRECTORY));
    Walk walk(bounds, visit);
    TRY(walk.directory(opened, "", 1));
    return {};
}

Result<void> remove_tree(const Fd& directory, const std::string& name) {
    return Removal(directory).whole(name);
}

Result<void> copy_bytes(const Fd& from, const Fd& to) {
    if (::ioctl(to.get(), FICLONE, from.get()) == 0) return {};
    constexpr size_t kStep = 16 << 20;
    for (bool first = true;; first = false) {
        const ssize_t put = ::copy_file_range(from.get(), nullptr, to.get(), nullptr, kStep, 0);
        if (put > 0) continue;
        if (put == 0) return {};
        if (errno == EINTR) continue;
        const bool cannot = errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP;
        if (!first || !cannot) return last_os_failure("copying");
        break;
    }
    std::vector<char> chunk(256 << 10);
    for (;;) {
        const ssize_t got = ::read(from.get(), chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return last_os_failure("reading");
        if (got == 0) return {};
        TRY_OK(write_all(to, {chunk.data(), static_cast<size_t>(got)}));
    }
}

// --- TreeBuilder ---

Result<Fd> TreeBuilder::make_way(const std::string& path) {
    Fd at = TRY(top_.duplicate());
    if (path.empty()) return at;
    for (const std::string& part : parts_of(path)) {
        if (::mkdirat(at.get(), part.c_str(), 0755) != 0 && errno != EEXIST)
            return last_os_failure("making the directory " + part);
        at = TRY(open_beneath(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    }
    return at;
}

Result<TreeBuilder::Place> TreeBuilder::place(const std::string& path) {
    const auto parts = parts_of(path);
    const bool odd = std::ranges::any_of(parts, [](const std::string& part) {
        return part.empty() || part == "." || part == ".." || part.size() > 255 ||
               part.find('\0') != std::string::npos;
    });
    if (odd) {
        return make_error(ErrorKind::InvalidArgument,
                          "the entry `" + path + "` does not stay below its directory");
    }
    const size_t slash = path.rfind('/');
    const std::string way = slash == std::string::npos ? "" : path.substr(0, slash);
    if (!last_directory_.open() || way != last_way_) {
        auto made = make_way(way);
        if (!made && (made.error().os_error == ELOOP || made.error().os_error == ENOTDIR)) {
            return make_error(ErrorKind::InvalidArgument,
                              "the entry `" + path + "` leads through a link or a file");
        }
        if (!made) return std::move(made).error();
        last_directory_ = std::move(*made);
        last_way_ = way;
    }
    return Place{.directory = TRY(last_directory_.duplicate()), .name = parts.back()};
}

Result<void> TreeBuilder::directory(const std::string& path, mode_t mode) {
    const Place at = TRY(place(path));
    if (::mkdirat(at.directory.get(), at.name.c_str(), mode) == 0) return {};
    if (errno != EEXIST) return last_os_failure("making the directory " + path);
    const auto there = open_at(at.directory, at.name, kDirectory);
    if (!there) {
        return make_error(ErrorKind::InvalidArgument,
                          "the entry `" + path + "` is a directory, and something else before");
    }
    if (::fchmod(there->get(), mode) != 0) return last_os_failure("setting the mode of " + path);
    return {};
}

Result<Fd> TreeBuilder::file(const std::string& path, mode_t mode) {
    const Place at = TRY(place(path));
    constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    auto made = open_at(at.directory, at.name, kNew, mode);
    if (!made && made.error().os_error == EEXIST) {
        (void)::unlinkat(at.directory.get(), at.name.c_str(), 0);  // a directory stays, as an error
        made = open_at(at.directory, at.name, kNew, mode);
    }
    if (!made && made.error().os_error == EEXIST) {
        return make_error(ErrorKind::InvalidArgument,
                          "the entry `" + path + "` is a file, and a directory before");
    }
    return made;
}

Result<void> TreeBuilder::symlink(const std::string& path, const std::string& target) {
    const Place at = TRY(place(path));
    (void)::unlinkat(at.directory.get(), at.name.c_str(), 0);  // as for files
    if (::symlinkat(target.c_str(), at.directory.get(), at.name.c_str()) == 0) return {};
    return last_os_failure("making the link " + path);
}

Result<void> TreeBuilder::hard_link(const std::string& path, const std::string& earlier) {
    const Place from = TRY(place(earlier));
    struct stat about{};
    if (::fstatat(from.directory.get(), from.name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(about.st_mode)) {
        return make_error(ErrorKind::InvalidArgument, "the entry `" + path +
                                                          "` is a hard link to `" + earlier +
                                                          "`, which is no file before it");
    }
    const Place at = TRY(place(path));
    if (path == earlier) return {};
    (void)::unlinkat(at.directory.get(), at.name.c_str(), 0);  // as for files
    if (::linkat(from.directory.get(), from.name.c_str(), at.directory.get(), at.name.c_str(), 0) !=
        0)
        return last_os_failure("linking " + path);
    return {};
}

Result<void> merge_tree(const Fd& from, const Fd& into) {
    TRY_OK(check_merge(from, into));
    return move_in(from, into);
}

}  // namespace cloister::os
