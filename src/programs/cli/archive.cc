#include "programs/cli/archive.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/limits.h"
#include "wire/file_limits.h"

namespace cloister::cli {
namespace {

constexpr size_t kPiece = 4 * limits::kStreamChunk;

TarEntry tar_entry(const os::TreeEntry& entry) {
    return {.kind = S_ISDIR(entry.about.st_mode)   ? TarKind::Directory
                    : S_ISLNK(entry.about.st_mode) ? TarKind::Symlink
                                                   : TarKind::File,
            .path = S_ISDIR(entry.about.st_mode) ? entry.path + "/" : entry.path,
            .size = S_ISREG(entry.about.st_mode) ? static_cast<uint64_t>(entry.about.st_size) : 0,
            .mode = entry.about.st_mode & 07777,
            .modified = entry.about.st_mtim.tv_sec};
}

// As many bytes as the header says, also of a file that changes meanwhile.
Result<void> pack_content(const os::Fd& file, uint64_t size, const os::Fd& out) {
    std::string piece(kPiece, '\0');
    while (size > 0) {
        const size_t wanted = std::min<uint64_t>(size, piece.size());
        const ssize_t got = ::read(file.get(), piece.data(), wanted);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return last_os_failure("reading a file");
        const size_t bytes = got == 0 ? wanted : static_cast<size_t>(got);
        if (got == 0) std::fill_n(piece.begin(), bytes, '\0');
        TRY_OK(os::write_all(out, {piece.data(), bytes}));
        size -= bytes;
    }
    return {};
}

Result<os::Visit> pack(const os::TreeEntry& entry, const os::Fd& out) {
    TarEntry header = tar_entry(entry);
    if (S_ISREG(entry.about.st_mode)) {
        const os::Fd file =
            TRY(os::open_at(entry.directory, entry.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
        TRY_OK(os::write_all(out, tar_header(header)));
        TRY_OK(pack_content(file, header.size, out));
        TRY_OK(os::write_all(out, tar_padding(header.size)));
        return os::Visit::Descend;
    }
    if (S_ISLNK(entry.about.st_mode)) {
        header.target.resize(limits::kPathMax);
        const ssize_t got = ::readlinkat(entry.directory.get(), entry.name.c_str(),
                                         header.target.data(), header.target.size());
        if (got < 0) return last_os_failure("reading the link " + entry.path);
        header.target.resize(static_cast<size_t>(got));
    } else if (!S_ISDIR(entry.about.st_mode)) {
        return os::Visit::Skip;  // pipes, sockets and devices are left out
    }
    TRY_OK(os::write_all(out, tar_header(header)));
    return os::Visit::Descend;
}

Result<void> pack_all(const os::Fd& top, const os::Fd& out) {
    TRY_OK(os::walk_tree(top, {.entries_max = limits::kTreeEntriesMax},
                         [&out](const os::TreeEntry& entry) { return pack(entry, out); }));
    return os::write_all(out, tar_end());
}

}  // namespace

Result<std::unique_ptr<ArchiveSource>> ArchiveSource::open(const std::string& directory) {
    std::unique_ptr<ArchiveSource> source(new ArchiveSource);
    source->top_ = TRY(os::open_file(directory, O_RDONLY | O_DIRECTORY));
    os::Pipe pipe = TRY(os::make_pipe());
    source->read_ = std::move(pipe.read);
    source->write_ = std::move(pipe.write);
    source->thread_ = std::thread([self = source.get()] {
        self->packed_ = pack_all(self->top_, self->write_);
        self->write_.reset();
    });
    return source;
}

ArchiveSource::~ArchiveSource() {
    read_.reset();  // a thread that still writes finds nobody to read, and ends
    if (thread_.joinable()) thread_.join();
}

Result<std::string> ArchiveSource::next() {
    std::string piece(limits::kStreamChunk, '\0');
    ssize_t got = 0;
    do {
        got = ::read(read_.get(), piece.data(), piece.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return last_os_failure("reading a directory");
    piece.resize(static_cast<size_t>(got));
    if (got > 0) return piece;
    if (thread_.joinable()) thread_.join();
    if (!packed_) return packed_.error();
    return piece;
}

Result<ArchiveSink> ArchiveSink::create(const std::string& directory) {
    std::error_code failure;
    std::filesystem::create_directories(directory, failure);
    if (failure) return os_failure("making the directory " + directory, failure.value());
    return ArchiveSink(os::TreeBuilder(TRY(os::open_file(directory, O_RDONLY | O_DIRECTORY))));
}

Result<void> ArchiveSink::take(std::string_view bytes) {
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

Result<void> ArchiveSink::begin(const TarEntry& entry) {
    file_.reset();
    const auto mode = static_cast<mode_t>(entry.mode & 0777);
    switch (entry.kind) {
        case TarKind::Directory:
            return build_.directory(entry.path, mode | 0700);
        case TarKind::Symlink:
            return build_.symlink(entry.path, entry.target);
        case TarKind::HardLink:
            return build_.hard_link(entry.path, entry.target);
        case TarKind::File:
            break;
    }
    ++files_;
    file_ = TRY(build_.file(entry.path, mode));
    return {};
}

Result<void> ArchiveSink::finish() {
    file_.reset();
    if (tar_.finished()) return {};
    return make_error(ErrorKind::Unavailable, "the transfer broke off: some files are missing");
}

}  // namespace cloister::cli
