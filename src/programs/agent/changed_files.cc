#include "programs/agent/changed_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "base/utf8.h"
#include "os/fd.h"

namespace cloister::agent {
namespace {

// Of all paths together, so that the answer fits the agent's memory.
constexpr size_t kPathBytesMax = 128 * limits::kKiB;
// Looking at a file that the kernel remembers takes about a microsecond.
constexpr size_t kFew = 256;

struct Found {
    std::string path;
    int64_t size = 0;
    int64_t modified_ms = 0;
};

bool is_skipped(std::string_view name) {
    return name.starts_with('.') || name == "__pycache__" || name == "node_modules";
}

class Walk {
  public:
    Walk(const WalkRequest& request, size_t most)
        : since_(request.since), end_ms_(steady_ms() + request.time_max_ms), most_(most) {}

    void directory(const std::string& path, int depth);
    bool saw_all() const { return looked_at_ <= most_; }
    std::string answer(int disk_error);

  private:
    struct Entry {
        std::string name;
        struct stat about{};
    };
    // False when the walk has to stop.
    bool list(const std::string& path, std::vector<Entry>& entries);
    void file(const std::string& path, const struct stat& about);
    bool changed(const struct stat& about) const {
        const timespec& at = about.st_ctim;
        return at.tv_sec > since_.tv_sec ||
               (at.tv_sec == since_.tv_sec && at.tv_nsec >= since_.tv_nsec);
    }

    timespec since_;
    int64_t end_ms_;
    size_t most_;
    size_t looked_at_ = 0;
    size_t path_bytes_ = 0;
    uint64_t left_out_ = 0;
    std::vector<Found> found_;
};

bool Walk::list(const std::string& path, std::vector<Entry>& entries) {
    os::Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const int number = fd.get();
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(fd.open() ? ::fdopendir(number) : nullptr,
                                                  &::closedir);
    if (!dir) return true;
    (void)fd.release();  // dir closes it
    while (const dirent* entry = ::readdir(dir.get())) {
        if (is_skipped(entry->d_name)) continue;
        if (++looked_at_ > most_ || steady_ms() > end_ms_) return false;
        Entry found{.name = entry->d_name, .about = {}};
        if (::fstatat(number, entry->d_name, &found.about, AT_SYMLINK_NOFOLLOW) == 0) {
            entries.push_back(std::move(found));
        }
    }
    return true;
}

void Walk::directory(const std::string& path, int depth) {
    std::vector<Entry> entries;
    const bool whole = list(path, entries);
    std::ranges::sort(entries, {}, &Entry::name);
    for (const Entry& entry : entries) {
        const std::string inner = path == "/" ? path + entry.name : path + "/" + entry.name;
        if (S_ISREG(entry.about.st_mode)) file(inner, entry.about);
        if (S_ISDIR(entry.about.st_mode) && whole && depth > 1) directory(inner, depth - 1);
    }
}

void Walk::file(const std::string& path, const struct stat& about) {
    if (!changed(about)) return;
    if (found_.size() == limits::kArtifactsMax || path_bytes_ + path.size() > kPathBytesMax ||
        !is_utf8(path)) {
        ++left_out_;
        return;
    }
    path_bytes_ += path.size();
    found_.push_back(
        {.path = path,
         .size = about.st_size,
         .modified_ms = about.st_mtim.tv_sec * 1000 + about.st_mtim.tv_nsec / 1'000'000});
}

std::string Walk::answer(int disk_error) {
    std::string text = R"({"artifacts":[)";
    for (const Found& found : found_) {
        if (&found != &found_.front()) text += ',';
        text += fmt::format(R"({{"path":{},"size":{},"modified_ms":{}}})", json_quote(found.path),
                            found.size, found.modified_ms);
    }
    return text + fmt::format(R"(],"left_out":{},"disk_error":{}}})", left_out_, disk_error) +
           kWalkEnd;
}

int error_of_small_write(const std::string& directory) {
    constexpr size_t kProbeBytes = 64 * limits::kKiB;
    const std::string path = fmt::format("{}/.cloister-probe-{}", directory, ::getpid());
    const os::Fd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    int error = file.open() ? 0 : errno;
    if (file.open() && ::unlink(path.c_str()) != 0) error = errno;
    if (error == 0) {
        const auto written = os::write_all(file, std::string(kProbeBytes, 'x'));
        if (!written) error = written.error().os_error;
    }
    return error == ENOSPC || error == EDQUOT ? error : 0;
}

}  // namespace

std::string changed_files(const WalkRequest& request) {
    Walk walk(request, limits::kArtifactWalkMax);
    walk.directory(request.directory, limits::kArtifactDepthMax);
    return walk.answer(request.probe == DiskProbe::Yes ? error_of_small_write(request.directory)
                                                       : 0);
}

std::optional<std::string> changed_files_of_few(const WalkRequest& request) {
    if (request.probe == DiskProbe::Yes) return std::nullopt;
    Walk walk(request, kFew);
    walk.directory(request.directory, limits::kArtifactDepthMax);
    if (!walk.saw_all()) return std::nullopt;
    return walk.answer(0);
}

timespec file_clock_now() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now;
}

}  // namespace cloister::agent
