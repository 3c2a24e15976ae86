// pack and unpack (file_ops.h): a directory as a tar archive, down and up.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/ids.h"
#include "base/limits.h"
#include "os/tree.h"
#include "programs/agent/answers.h"
#include "programs/agent/file_ops.h"
#include "programs/agent/file_replacement.h"
#include "wire/file_limits.h"
#include "wire/tar.h"

namespace cloister::agent {
namespace {

using os::TreeEntry;
using os::Visit;

// --- Packing ---

TarEntry tar_entry(const std::string& path, const struct stat& about) {
    return {.kind = S_ISDIR(about.st_mode)   ? TarKind::Directory
                    : S_ISLNK(about.st_mode) ? TarKind::Symlink
                                             : TarKind::File,
            .path = S_ISDIR(about.st_mode) ? path + "/" : path,
            .size = S_ISREG(about.st_mode) ? static_cast<uint64_t>(about.st_size) : 0,
            .mode = about.st_mode & 07777,
            .uid = about.st_uid,
            .gid = about.st_gid,
            .modified = about.st_mtim.tv_sec};
}

class Packer {
  public:
    explicit Packer(DataWriter& out) : out_(out) {}

    Result<void> entry(const os::Fd& directory, const std::string& name, const std::string& path,
                       const struct stat& about) {
        if (S_ISREG(about.st_mode)) return file(directory, name, path);
        TarEntry entry = tar_entry(path, about);
        if (S_ISLNK(about.st_mode)) {
            entry.target.resize(limits::kPathMax);
            const ssize_t got = ::readlinkat(directory.get(), name.c_str(), entry.target.data(),
                                             entry.target.size());
            if (got < 0) return {};  // gone meanwhile
            entry.target.resize(static_cast<size_t>(got));
        } else if (!S_ISDIR(about.st_mode)) {
            return {};  // pipes, sockets and devices are left out
        }
        return out_.append(tar_header(entry));
    }

    Result<void> file(const os::Fd& directory, const std::string& name, const std::string& path) {
        const auto file =
            os::open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (!file && (file.error().os_error == ENOENT || file.error().os_error == ELOOP))
            return {};  // gone meanwhile
        if (!file) return path_failure("reading", path, file.error());
        return opened(*file, path);
    }

    Result<void> opened(const os::Fd& file, const std::string& path) {
        struct stat about{};
        if (::fstat(file.get(), &about) != 0) return path_failure("reading", path, errno);
        if (!S_ISREG(about.st_mode)) return {};
        const TarEntry entry = tar_entry(path, about);
        TRY_OK(out_.append(tar_header(entry)));
        TRY_OK(content(file, path, entry.size));
        return out_.append(tar_padding(entry.size));
    }

  private:
    // As many bytes as the header says, also of a file that changes meanwhile.
    Result<void> content(const os::Fd& file, const std::string& path, uint64_t size) {
        while (size > 0) {
            const size_t wanted = std::min<uint64_t>(size, chunk_.size());
            const ssize_t got = ::read(file.get(), chunk_.data(), wanted);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return path_failure("reading", path, errno);
            const size_t piece = got == 0 ? wanted : static_cast<size_t>(got);
            if (got == 0) std::fill_n(chunk_.begin(), piece, '\0');
            TRY_OK(out_.append({chunk_.data(), piece}));
            size -= piece;
        }
        return {};
    }

    DataWriter& out_;
    std::string chunk_ = std::string(2 * limits::kStreamChunk, '\0');
};

Result<void> pack_directory(const os::Fd& top, Packer& packer) {
    return os::walk_tree(
        top, {.entries_max = limits::kTreeEntriesMax},
        [&](const TreeEntry& entry) -> Result<Visit> {
            TRY_OK(packer.entry(entry.directory, entry.name, entry.path, entry.about));
            return Visit::Descend;
        });
}

// --- Unpacking ---

// An archive as it comes, built in a directory of its own.
class Unpacker {
  public:
    explicit Unpacker(os::Fd top) : build_(std::move(top)) {}

    Result<void> feed(std::string_view bytes) {
        tar_.feed(bytes);
        while (auto part = TRY(tar_.next())) {
            if (const auto* entry = std::get_if<TarEntry>(&*part)) {
                TRY_OK(begin(*entry));
            } else if (file_.open()) {
                TRY_OK(os::write_all(file_, std::get<TarDecoder::Content>(*part).bytes));
            }
        }
        return {};
    }
    Result<void> finish() {
        if (!tar_.finished()) {
            return make_error(ErrorKind::InvalidArgument, "the archive broke off: send all of it");
        }
        return end_file();
    }
    uint64_t entries() const { return entries_; }
    uint64_t bytes() const { return bytes_; }

  private:
    Result<void> begin(const TarEntry& entry) {
        TRY_OK(end_file());
        if (++entries_ > limits::kTreeEntriesMax) {
            return make_error(ErrorKind::TooLarge, fmt::format("an archive has at most {} entries",
                                                               limits::kTreeEntriesMax));
        }
        bytes_ += entry.size;
        if (bytes_ > limits::kUploadMax) {
            return make_error(ErrorKind::TooLarge,
                              fmt::format("an archive holds at most {} bytes", limits::kUploadMax));
        }
        const std::string path = TRY(inner_path(entry.path));
        if (path.empty()) return {};  // the top itself
        return put(entry, path);
    }

    Result<void> put(const TarEntry& entry, const std::string& path) {
        const auto mode = static_cast<mode_t>(entry.mode & 0777);
        switch (entry.kind) {
            case TarKind::Directory:
                return build_.directory(path, mode | 0700);
            case TarKind::Symlink:
                return build_.symlink(path, entry.target);
            case TarKind::HardLink:
                return build_.hard_link(path, TRY(inner_path(entry.target)));
            case TarKind::File:
                break;
        }
        file_ = TRY(build_.file(path, 0600));
        mode_ = mode;
        modified_ = entry.modified;
        return {};
    }

    Result<void> end_file() {
        if (!file_.open()) return {};
        const std::array<timespec, 2> times{
            {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = modified_, .tv_nsec = 0}}};
        if (::fchmod(file_.get(), mode_) != 0 || ::futimens(file_.get(), times.data()) != 0)
            return last_os_failure("finishing a file");
        file_.reset();
        return {};
    }

    // "./a/b" → "a/b"; the rest is the builder's to judge.
    static Result<std::string> inner_path(std::string path) {
        while (path.starts_with("./")) path.erase(0, 2);
        if (path == ".") path.clear();
        if (std::ranges::count(path, '/') >= limits::kFileDepthMax) {
            return make_error(
                ErrorKind::TooLarge,
                fmt::format("an entry of the archive lies more than {} directories deep",
                            limits::kFileDepthMax));
        }
        return path;
    }

    TarDecoder tar_;
    os::TreeBuilder build_;
    os::Fd file_;
    mode_t mode_ = 0;
    time_t modified_ = 0;
    uint64_t entries_ = 0, bytes_ = 0;
};

// The directory where an archive is built, which nobody looks at; it goes in any case.
class Staging {
  public:
    static Result<Staging> create(const os::Fd& directory, const std::string& path) {
        Staging made(directory);
        if (::mkdirat(directory.get(), made.name_.c_str(), 0700) != 0)
            return path_failure("unpacking in", path, errno);
        return made;
    }
    Staging(Staging&& other) noexcept
        : directory_(other.directory_), name_(std::exchange(other.name_, {})) {}
    ~Staging() {
        // A failure has its answer already; what cannot be removed stays.
        if (!name_.empty()) (void)os::remove_tree(*directory_, name_);
    }
    Result<os::Fd> open() const {
        return os::open_at(*directory_, name_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    }

  private:
    explicit Staging(const os::Fd& directory)
        : directory_(&directory), name_(".cloister-" + new_id()) {}
    const os::Fd* directory_;
    std::string name_;
};

Error about_unpack(const std::string& path, const Error& error) {
    return error.os_error == 0 ? error : path_failure("unpacking in", path, error);
}

Result<void> unpack_all(FileChannel& channel, Unpacker& unpacker) {
    for (;;) {
        const std::string_view bytes = TRY(channel.next_data());
        if (bytes.empty()) return unpacker.finish();
        TRY_OK(unpacker.feed(bytes));
    }
}

// The directory to unpack in, made if it is not there.
Result<os::Fd> directory_for(const FileRequest& request, const FileRoot& root) {
    const Place place = TRY(root.locate_or_make(request.path));
    if (::mkdirat(place.directory.get(), place.name.c_str(), 0755) != 0 && errno != EEXIST)
        return path_failure("making", request.path, errno);
    return root.open_directory(request.path);
}

}  // namespace

Result<void> pack_files(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const os::Fd top = TRY(root.open(request.path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    struct stat about{};
    if (::fstat(top.get(), &about) != 0) return path_failure("reading", request.path, errno);
    if (!S_ISDIR(about.st_mode) && !S_ISREG(about.st_mode)) {
        return invalid_field("path", request.path + " is neither a directory nor a file");
    }
    TRY_OK(channel.send(FrameKind::Json, ok_answer()));
    DataWriter out(channel);
    Packer packer(out);
    const std::string name = request.path.substr(request.path.rfind('/') + 1);
    const auto packed =
        S_ISDIR(about.st_mode) ? pack_directory(top, packer) : packer.opened(top, name);
    if (!packed) return about_unpack(request.path, packed.error());
    TRY_OK(out.append(tar_end()));
    return out.finish();
}

Result<void> unpack_files(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const os::Fd into = TRY(directory_for(request, root));
    const Staging staging = TRY(Staging::create(into, request.path));
    const os::Fd top = TRY(staging.open());
    Unpacker unpacker(TRY(top.duplicate()));
    TRY_OK(channel.send(FrameKind::Json, ok_answer()));
    const auto unpacked = unpack_all(channel, unpacker);
    if (!unpacked) return about_unpack(request.path, unpacked.error());
    const auto merged = os::merge_tree(top, into);
    if (!merged) return about_unpack(request.path, merged.error());
    if (request.durable && ::syncfs(into.get()) != 0)
        return path_failure("syncing", request.path, errno);
    wait_for_the_next_tick(into);
    return channel.send(
        FrameKind::Json,
        ok_answer(fmt::format(R"("entries":{},"bytes":{})", unpacker.entries(), unpacker.bytes())));
}

}  // namespace cloister::agent
