// watch (file_ops.h): what changes below a directory, as events, until the client goes away.
//
// The kernel's queue is the bound: while the client does not read, we do not either, and what the
// queue then has no room for is told as `overflow`.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "os/resolve.h"
#include "os/tree.h"
#include "programs/agent/answers.h"
#include "programs/agent/file_entry.h"
#include "programs/agent/file_ops.h"
#include "wire/file_limits.h"

namespace cloister::agent {
namespace {

constexpr uint32_t kChanges = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM |
                              IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// The second half of a rename comes right behind the first.
constexpr int kRenameMs = 20;
// While we hold the top, the kernel does not tell that it was removed: it is looked at so often.
constexpr int kTopMs = 1'000;
// What was found in a new directory, and may still come as an event of its own; beyond that, some
// are told twice.
constexpr size_t kFoundMax = 10'000;

std::string below(const std::string& directory, const std::string& name) {
    return directory.empty() ? name : directory + "/" + name;
}

// A file that is still being written (file_replacement.h): nobody else's affair.
bool is_ours(std::string_view name) {
    constexpr std::string_view kPrefix = ".cloister-";
    return name.starts_with(kPrefix) && is_id(name.substr(kPrefix.size()));
}

class Watch {
  public:
    Watch(const FileRequest& request, FileChannel& channel, os::Fd top)
        : request_(request), channel_(channel), top_(std::move(top)) {}

    Result<void> open() {
        inotify_ = os::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
        if (!inotify_.open()) return path_failure("watching", request_.path, errno);
        TRY_OK(watch_directory(top_, ""));
        if (request_.recursive) TRY_OK(watch_tree("", Report::No));
        return {};
    }

    // Until the client is gone, or the directory.
    Result<void> run() {
        while (!over_) {
            std::array<pollfd, 2> entries{
                {{.fd = inotify_.get(), .events = POLLIN, .revents = 0},
                 {.fd = channel_.connection().get(), .events = POLLIN | POLLRDHUP, .revents = 0}}};
            const int ready = ::poll(entries.data(), entries.size(), moved_ ? kRenameMs : kTopMs);
            if (ready < 0 && errno != EINTR) return path_failure("watching", request_.path, errno);
            if (entries[1].revents != 0) return {};
            if (ready == 0) moved_away();
            if (entries[0].revents != 0) TRY_OK(take_events());
            if (struct stat about{}; ::fstat(top_.get(), &about) == 0 && about.st_nlink == 0)
                top_is_gone();
            TRY_OK(send());
        }
        return {};
    }

  private:
    enum class Report { No, Yes };
    struct Moved {
        uint32_t cookie;
        std::string path;
        bool directory;
    };

    Result<void> watch_directory(const os::Fd& directory, const std::string& path) {
        if (paths_.size() == limits::kWatchDirectoriesMax) {
            return make_error(
                ErrorKind::TooLarge,
                fmt::format("a watch is on at most {} directories", limits::kWatchDirectoriesMax));
        }
        const int number =
            ::inotify_add_watch(inotify_.get(), os::path_of(directory).c_str(), kChanges);
        if (number < 0) return path_failure("watching", request_.path, errno);
        paths_[number] = path;  // also of one that was moved
        return {};
    }

    // All directories below `path`. What is in one that has just come is told, too.
    Result<void> watch_tree(const std::string& path, Report report) {
        auto top =
            path.empty() ? top_.duplicate() : os::open_beneath(top_, path, O_RDONLY | O_DIRECTORY);
        if (!top) return {};  // gone already
        if (!path.empty()) TRY_OK(watch_directory(*top, path));
        const os::TreeBounds bounds{.entries_max = limits::kTreeEntriesMax,
                                    .too_deep = os::TreeBounds::TooDeep::Ignore,
                                    .unreadable = os::TreeBounds::Unreadable::Skip};
        return os::walk_tree(*top, bounds, [&](const os::TreeEntry& entry) -> Result<os::Visit> {
            const std::string inner = below(path, entry.path);
            if (is_ours(entry.name)) return os::Visit::Skip;
            if (report == Report::Yes) {
                event("create", inner, S_ISDIR(entry.about.st_mode));
                if (found_.size() < kFoundMax) found_.insert(inner);
            }
            if (!S_ISDIR(entry.about.st_mode)) return os::Visit::Skip;
            const auto directory =
                os::open_at(entry.directory, entry.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
            if (!directory) return os::Visit::Skip;
            TRY_OK(watch_directory(*directory, inner));
            return os::Visit::Descend;
        });
    }

    // One that came while we watch: if it cannot be watched, events are missing.
    void watch_new(const std::string& path, Report report) {
        if (request_.recursive && !watch_tree(path, report)) overflow();
    }

    Result<void> take_events() {
        alignas(inotify_event) std::array<char, 16 * 1024> buffer;
        const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
        if (got <= 0) return path_failure("watching", request_.path, errno);
        written_.clear();
        for (size_t at = 0; at < static_cast<size_t>(got);) {
            const auto* one = reinterpret_cast<const inotify_event*>(buffer.data() + at);
            take(*one);
            at += sizeof(inotify_event) + one->len;
        }
        return {};
    }

    void take(const inotify_event& one) {
        if ((one.mask & IN_Q_OVERFLOW) != 0) return overflow();
        const auto found = paths_.find(one.wd);
        if (found == paths_.end()) return;
        if ((one.mask & IN_IGNORED) != 0) return void(paths_.erase(found));
        if ((one.mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
            if (found->second.empty()) top_is_gone();  // moved
            return;
        }
        if (one.len == 0) {
            // The directory's own attributes; its parent tells them, but for the top.
            if (found->second.empty() && (one.mask & IN_ATTRIB) != 0) event("chmod", "", true);
            return;
        }
        const std::string name(one.name);
        // A file without a name (O_TMPFILE) has its number for one while it is written.
        const bool nameless = name.starts_with('#') && (one.mask & (IN_ATTRIB | IN_MODIFY)) != 0;
        if (nameless && !exists(below(found->second, name))) return;
        change(one.mask, one.cookie, below(found->second, name), is_ours(name));
    }

    bool exists(const std::string& path) const {
        return os::open_beneath(top_, path, O_PATH | O_NOFOLLOW).has_value();
    }

    void change(uint32_t mask, uint32_t cookie, const std::string& path, bool ours) {
        const bool directory = (mask & IN_ISDIR) != 0;
        if ((mask & IN_MOVED_TO) != 0) return moved_here(cookie, path, directory);
        if (moved_) moved_away();
        if ((mask & IN_MOVED_FROM) != 0) {
            moved_ = Moved{.cookie = cookie, .path = path, .directory = directory};
            return;
        }
        if (ours) return;
        if ((mask & IN_CREATE) != 0) {
            if (found_.erase(path) > 0) return;  // it was told when its directory came
            event("create", path, directory);
            if (directory) watch_new(path, Report::Yes);
        } else if ((mask & IN_DELETE) != 0) {
            event("remove", path, directory);
        } else if ((mask & IN_ATTRIB) != 0) {
            event("chmod", path, directory);
        } else if (written_.insert(path).second) {  // many writes at once are one
            event("write", path, directory);
        }
    }

    void moved_here(uint32_t cookie, const std::string& path, bool directory) {
        const bool here = moved_ && moved_->cookie == cookie;
        if (moved_ && !here) moved_away();
        if (!here) {
            event("create", path, directory);
            if (directory) watch_new(path, Report::Yes);
            return;
        }
        const Moved from = *std::exchange(moved_, std::nullopt);
        if (is_ours(from.path.substr(from.path.rfind('/') + 1)))
            return event("write", path, directory);
        event("rename", from.path, directory, path);
        if (directory) watch_new(path, Report::No);  // their paths are others now
    }

    // What was moved out of sight.
    void moved_away() {
        if (!moved_) return;
        const Moved from = *std::exchange(moved_, std::nullopt);
        if (is_ours(from.path.substr(from.path.rfind('/') + 1))) return;
        event("remove", from.path, from.directory);
        for (const auto& [number, path] : paths_) {
            if (path == from.path || path.starts_with(from.path + "/"))
                ::inotify_rm_watch(inotify_.get(), number);
        }
    }

    void top_is_gone() {
        if (std::exchange(over_, true)) return;
        event("remove", "", true);
        out_.emplace_back(R"({"event":"ended","reason":"removed"})");
    }

    void overflow() { out_.emplace_back(R"({"event":"overflow"})"); }

    void event(std::string_view name, const std::string& path, bool directory,
               const std::string& to = {}) {
        const auto whole = [this](const std::string& inner) {
            return joined(request_.path, inner);
        };
        std::string text = fmt::format(R"({{"event":"{}","path":{},"name":{},"type":"{}")", name,
                                       json_quote(whole(path)), json_quote(path),
                                       directory ? "directory" : "file");
        if (!to.empty())
            text += fmt::format(R"(,"to":{},"to_name":{})", json_quote(whole(to)), json_quote(to));
        out_.push_back(text + "}");
    }

    Result<void> send() {
        std::string frames;
        for (const std::string& text : out_) append_frame(frames, FrameKind::Json, text);
        out_.clear();
        if (frames.empty()) return {};
        return os::write_all(channel_.connection(), frames);
    }

    const FileRequest& request_;
    FileChannel& channel_;
    os::Fd top_, inotify_;
    std::map<int, std::string> paths_;  // of watches, relative to the top
    std::optional<Moved> moved_;        // the first half of a rename
    std::set<std::string> written_;     // told in this round
    std::set<std::string> found_;       // told before their own event
    std::vector<std::string> out_;
    bool over_ = false;
};

}  // namespace

Result<void> watch_files(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    Watch watch(request, channel, TRY(root.open_directory(request.path)));
    TRY_OK(watch.open());
    TRY_OK(channel.send(FrameKind::Json, ok_answer()));
    // A client that is gone needs no answer.
    (void)watch.run();
    return {};
}

}  // namespace cloister::agent
