#include "programs/agent/file_ops.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/limits.h"
#include "os/resolve.h"
#include "programs/agent/answers.h"
#include "programs/agent/file_entry.h"
#include "programs/agent/file_replacement.h"

namespace cloister::agent {
namespace {

// --- Reading ---

constexpr long kProcMagic = 0x9fa0;  // linux/magic.h

Result<os::Fd> open_regular(const FileRoot& root, const std::string& path, struct stat& about) {
    // Without waiting: opening a pipe would wait for its writer.
    os::Fd file = TRY(root.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    if (::fstat(file.get(), &about) != 0) return path_failure("reading", path, errno);
    if (S_ISDIR(about.st_mode)) return path_failure("reading", path, EISDIR);
    if (!S_ISREG(about.st_mode)) {
        return invalid_field("path", path + " is no regular file: only such files can be read");
    }
    return file;
}

// Whether somebody else may read the bytes from the descriptor: files of /proc are made up while
// they are read.
bool may_be_passed(const os::Fd& file, const struct stat& about) {
    struct statfs system{};
    return about.st_size > 0 && ::fstatfs(file.get(), &system) == 0 && system.f_type != kProcMagic;
}

Result<void> send_bytes(const os::Fd& file, const FileRequest& request, FileChannel& channel) {
    std::string chunk(4 * limits::kStreamChunk, '\0');
    uint64_t left = request.length.value_or(UINT64_MAX);
    auto at = static_cast<off_t>(request.offset);
    while (left > 0) {
        const size_t wanted = std::min<uint64_t>(left, chunk.size());
        const ssize_t got = ::pread(file.get(), chunk.data(), wanted, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return path_failure("reading", request.path, errno);
        if (got == 0) break;
        TRY_OK(channel.send(FrameKind::Data,
                            std::string_view(chunk).substr(0, static_cast<size_t>(got))));
        left -= static_cast<uint64_t>(got);
        at += got;
    }
    return channel.send(FrameKind::Data, {});
}

// --- Writing ---

bool same(const struct stat& about, const std::string& if_match) {
    return if_match == "*" || etag_of(about) == if_match;
}

// Whether the file is as the client believes it to be.
Result<void> check_conditions(const FileRequest& request, const Place& place) {
    if (request.if_match.empty() && !request.if_absent) return {};
    const auto about = TRY(look_at(place));
    if (request.if_absent && about) {
        return make_error(ErrorKind::FailedPrecondition, request.path + " exists already");
    }
    if (request.if_match.empty()) return {};
    if (about && same(*about, request.if_match)) return {};
    return make_error(ErrorKind::FailedPrecondition,
                      request.path + (about ? " was changed meanwhile" : " does not exist"));
}

// As asked; else that of the file which is replaced, if it is the user's own.
mode_t mode_for(const FileRequest& request, const Place& place) {
    constexpr mode_t kDefault = 0644;
    if (request.mode) return *request.mode;
    const auto about = look_at(place);
    if (!about || !*about || !S_ISREG((*about)->st_mode) || (*about)->st_uid != ::geteuid())
        return kDefault;
    return (*about)->st_mode & 0777;
}

Result<uint64_t> take_data(FileChannel& channel, const os::Fd& file, const std::string& path) {
    for (uint64_t size = 0;;) {
        const std::string_view bytes = TRY(channel.next_data());
        if (bytes.empty()) return size;
        const auto written = os::write_all(file, bytes);
        if (!written) return path_failure("writing", path, written.error());
        size += bytes.size();
    }
}

Result<void> answer_written(FileChannel& channel, uint64_t size, const os::Fd& file,
                            const std::string& path) {
    const std::string entry = TRY(describe_open(file, path));
    return channel.send(FrameKind::Json,
                        ok_answer(fmt::format(R"("size":{},"entry":{})", size, entry)));
}

Result<void> replace(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const Place place = TRY(root.locate_for_write(request.path));
    TRY_OK(check_conditions(request, place));
    Replacement file = TRY(Replacement::create(place));
    TRY_OK(channel.send(FrameKind::Json, ok_answer()));
    const uint64_t size = TRY(take_data(channel, file.file(), request.path));
    if (request.metadata) TRY_OK(set_metadata(file.file(), request.path, *request.metadata));
    TRY_OK(check_conditions(request, place));
    const auto done = file.commit(mode_for(request, place),
                                  request.if_absent ? IfThere::Refuse : IfThere::Replace,
                                  request.durable ? Durable::Yes : Durable::No);
    if (!done && request.if_absent && done.error().kind == ErrorKind::AlreadyExists) {
        return make_error(ErrorKind::FailedPrecondition, request.path + " exists already");
    }
    TRY_OK(done);
    return answer_written(channel, size, file.file(), request.path);
}

// What it adds it adds as it comes.
Result<void> append(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const Place place = TRY(root.locate_for_write(request.path));
    TRY_OK(check_conditions(request, place));
    constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    const auto file = os::open_at(place.directory, place.name, kFlags, request.mode.value_or(0644));
    if (!file) return path_failure("writing", request.path, file.error());
    struct stat about{};
    if (::fstat(file->get(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return invalid_field("path", request.path + " is no regular file");
    }
    TRY_OK(channel.send(FrameKind::Json, ok_answer()));
    const uint64_t size = TRY(take_data(channel, *file, request.path));
    if (request.mode && ::fchmod(file->get(), *request.mode) != 0)
        return path_failure("writing", request.path, errno);
    if (request.metadata) TRY_OK(set_metadata(*file, request.path, *request.metadata));
    if (request.durable) {
        if (::fsync(file->get()) != 0) return path_failure("syncing", request.path, errno);
        TRY_OK(sync_directory(place.directory, request.path));
    }
    wait_for_the_next_tick(*file);
    return answer_written(channel, size, *file, request.path);
}

// --- Serving ---

FileServer server_of(FileVerb verb) {
    switch (verb) {
        case FileVerb::Read:
            return read_file;
        case FileVerb::Write:
            return write_file;
        case FileVerb::Stat:
            return stat_file;
        case FileVerb::List:
            return list_files;
        case FileVerb::MakeDirectory:
            return make_directory;
        case FileVerb::Move:
            return move_file;
        case FileVerb::Copy:
            return copy_file;
        case FileVerb::Remove:
            return remove_file;
        case FileVerb::Change:
            return change_file;
        case FileVerb::Search:
            return search_files;
        case FileVerb::Watch:
            return watch_files;
        case FileVerb::Pack:
            return pack_files;
        case FileVerb::Unpack:
            return unpack_files;
    }
    return stat_file;
}

// After a failure: a client in the middle of sending would otherwise lose the answer to it.
void discard_rest(const os::Fd& connection) {
    ::alarm(5);  // the default of SIGALRM ends this process
    std::array<char, limits::kStreamChunk> rest{};
    while (::read(connection.get(), rest.data(), rest.size()) > 0) {
    }
}

Result<void> serve(const FileRequest& request, FileChannel& channel) {
    const FileRoot root = TRY(FileRoot::create());
    return server_of(request.verb)(request, root, channel);
}

}  // namespace

Result<void> read_file(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    struct stat about{};
    const os::Fd file = TRY(open_regular(root, request.path, about));
    const std::string fields = fmt::format(R"("size":{},"entry":{})", about.st_size,
                                           TRY(describe_open(file, request.path)));
    if (request.hand == FileRequest::Hand::Descriptor && may_be_passed(file, about)) {
        return channel.send_with(file, ok_answer(fields + R"(,"descriptor":true)"));
    }
    TRY_OK(channel.send(FrameKind::Json, ok_answer(fields)));
    return send_bytes(file, request, channel);
}

Result<void> write_file(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    return request.append ? append(request, root, channel) : replace(request, root, channel);
}

void serve_file(const FileRequest& request, const os::Fd& connection) {
    FileChannel channel(connection);
    const Result<void> result = serve(request, channel);
    if (result || !channel.send(FrameKind::Json, error_answer(result.error()))) return;
    ::shutdown(connection.get(), SHUT_WR);
    discard_rest(connection);
}

}  // namespace cloister::agent
