#include "programs/agent/file_replacement.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/ids.h"
#include "os/resolve.h"
#include "programs/agent/changed_files.h"

namespace cloister::agent {
namespace {

bool is_after(const timespec& a, const timespec& b) {
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

std::string temporary_name() {
    return ".cloister-" + new_id();
}

}  // namespace

void wait_for_the_next_tick(const os::Fd& file) {
    struct stat about{};
    if (::fstat(file.get(), &about) != 0) return;
    for (int tries = 0; tries < 20 && !is_after(file_clock_now(), about.st_ctim); ++tries) {
        const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
        ::nanosleep(&millisecond, nullptr);
    }
}

Result<void> sync_directory(const os::Fd& directory, const std::string& path) {
    const auto readable = os::open_at(directory, ".", O_RDONLY | O_DIRECTORY);
    if (!readable) return path_failure("syncing the directory of", path, readable.error());
    if (::fsync(readable->get()) != 0) return path_failure("syncing the directory of", path, errno);
    return {};
}

// Without a name until it is whole, so that whoever kills us leaves nothing either. File systems
// that cannot do that give it one.
Result<Replacement> Replacement::create(const Place& place) {
    Replacement made(place);
    auto file = os::open_at(place.directory, ".", O_TMPFILE | O_WRONLY, 0600);
    if (!file && (file.error().os_error == EOPNOTSUPP || file.error().os_error == EISDIR)) {
        std::string name = temporary_name();
        file = os::open_at(place.directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (file) made.temporary_ = std::move(name);
    }
    if (!file) return path_failure("writing", place.path, file.error());
    made.file_ = std::move(*file);
    return made;
}

Replacement::Replacement(Replacement&& other) noexcept
    : place_(other.place_),
      file_(std::move(other.file_)),
      temporary_(std::exchange(other.temporary_, {})) {}

Replacement::~Replacement() {
    if (!temporary_.empty()) ::unlinkat(place_->directory.get(), temporary_.c_str(), 0);
}

Result<void> Replacement::append(std::string_view bytes) const {
    const auto written = os::write_all(file_, bytes);
    if (!written) return path_failure("writing", place_->path, written.error());
    return {};
}

Result<void> Replacement::name_it() {
    std::string name = temporary_name();
    if (::linkat(AT_FDCWD, os::path_of(file_).c_str(), place_->directory.get(), name.c_str(),
                 AT_SYMLINK_FOLLOW) != 0)
        return path_failure("writing", place_->path, errno);
    temporary_ = std::move(name);
    return {};
}

Result<void> Replacement::put_in_place(IfThere if_there) {
    const int directory = place_->directory.get();
    if (temporary_.empty()) {
        if (::linkat(AT_FDCWD, os::path_of(file_).c_str(), directory, place_->name.c_str(),
                     AT_SYMLINK_FOLLOW) == 0)
            return {};
        if (errno != EEXIST || if_there == IfThere::Refuse)
            return path_failure("writing", place_->path, errno);
        TRY_OK(name_it());
    }
    const unsigned flags = if_there == IfThere::Refuse ? RENAME_NOREPLACE : 0;
    if (::renameat2(directory, temporary_.c_str(), directory, place_->name.c_str(), flags) != 0)
        return path_failure("writing", place_->path, errno);
    temporary_.clear();
    return {};
}

Result<void> Replacement::commit(mode_t mode, IfThere if_there, Durable durable) {
    if (::fchmod(file_.get(), mode) != 0) return path_failure("writing", place_->path, errno);
    if (durable == Durable::Yes && ::fsync(file_.get()) != 0)
        return path_failure("syncing", place_->path, errno);
    TRY_OK(put_in_place(if_there));
    if (durable == Durable::Yes) TRY_OK(sync_directory(place_->directory, place_->path));
    wait_for_the_next_tick(file_);
    return {};
}

}  // namespace cloister::agent
