// search (file_ops.h): by the names of files and by what their lines hold, within bounds of number,
// bytes and time.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/json_text.h"
#include "base/limits.h"
#include "base/time.h"
#include "os/tree.h"
#include "programs/agent/answers.h"
#include "programs/agent/file_entry.h"
#include "programs/agent/file_ops.h"
#include "wire/file_limits.h"
#include "wire/glob.h"

namespace cloister::agent {
namespace {

using os::TreeEntry;
using os::Visit;

constexpr size_t kChunk = 256 * limits::kKiB;
constexpr size_t kProbe = 8 * limits::kKiB;  // a zero byte in here: no text

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

class Search {
  public:
    explicit Search(const FileRequest& request)
        : request_(request),
          text_(request.ignore_case ? lower(request.text) : request.text),
          end_ms_(steady_ms() + limits::kSearchTimeMs) {}

    Result<Visit> take(const TreeEntry& entry) {
        if (++seen_ > limits::kTreeEntriesMax || steady_ms() > end_ms_) return stop();
        const Visit onward = entry.depth < request_.depth ? Visit::Descend : Visit::Skip;
        if (!request_.glob.empty() && !matches_glob(request_.glob, entry.path)) return onward;
        description_ =
            describe(entry.directory, entry.name, joined(request_.path, entry.path), entry.about);
        if (text_.empty()) return add("") ? onward : stop();
        if (!S_ISREG(entry.about.st_mode)) return onward;
        return look_into(entry) ? onward : stop();
    }

    std::string answer() const {
        return ok_answer(fmt::format(R"("matches":[{}],"truncated":{},"entries_seen":{})", matches_,
                                     truncated_, seen_));
    }

  private:
    Visit stop() {
        truncated_ = true;
        return Visit::Stop;
    }

    // False when there is no room for it.
    bool add(const std::string& more) {
        if (count_ == request_.limit || matches_.size() > limits::kFilePageBytes) return false;
        matches_ +=
            fmt::format(R"({}{{"entry":{}{}}})", count_ == 0 ? "" : ",", description_, more);
        ++count_;
        return true;
    }

    // False when the search is over.
    bool look_into(const TreeEntry& entry) {
        const auto file =
            os::open_at(entry.directory, entry.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (!file) return true;  // not ours to read, or gone
        std::string data;
        line_ = 1;
        for (uint64_t read = 0; read < limits::kSearchFileBytes;) {
            if (steady_ms() > end_ms_) return false;
            const size_t before = data.size();
            data.resize(before + kChunk);
            const ssize_t got = ::read(file->get(), data.data() + before, kChunk);
            data.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
            if (got <= 0) return lines(data);
            if (read == 0 && data.substr(0, kProbe).find('\0') != std::string::npos) return true;
            read += static_cast<uint64_t>(got);
            const size_t end = data.rfind('\n');
            // A line beyond all size is looked at in pieces.
            const size_t whole = end != std::string::npos ? end + 1
                                 : data.size() > kChunk   ? data.size()
                                                          : 0;
            if (!lines(std::string_view(data).substr(0, whole))) return false;
            data.erase(0, whole);
        }
        return true;
    }

    bool lines(std::string_view data) {
        const std::string lowered = request_.ignore_case ? lower(data) : std::string();
        const std::string_view searched = request_.ignore_case ? lowered : data;
        size_t counted = 0;
        for (size_t hit = searched.find(text_); hit != std::string_view::npos;) {
            const size_t begin = hit == 0 ? 0 : data.rfind('\n', hit - 1) + 1;
            const size_t end = std::min(data.find('\n', hit), data.size());
            line_ +=
                static_cast<uint64_t>(std::count(data.begin() + static_cast<ptrdiff_t>(counted),
                                                 data.begin() + static_cast<ptrdiff_t>(hit), '\n'));
            counted = hit;
            if (!add_line(data.substr(begin, end - begin), hit - begin)) return false;
            hit = end == data.size() ? std::string_view::npos : searched.find(text_, end + 1);
        }
        line_ += static_cast<uint64_t>(
            std::count(data.begin() + static_cast<ptrdiff_t>(counted), data.end(), '\n'));
        return true;
    }

    bool add_line(std::string_view line, size_t column) {
        // A piece of it that holds what was found.
        const size_t from =
            column > limits::kSearchLineMax / 2 ? column - limits::kSearchLineMax / 2 : 0;
        return add(fmt::format(R"(,"line":{},"column":{},"text":{})", line_, column + 1,
                               json_quote(line.substr(from, limits::kSearchLineMax))));
    }

    const FileRequest& request_;
    const std::string text_;
    const int64_t end_ms_;
    std::string description_, matches_;
    uint64_t line_ = 1;
    size_t count_ = 0;
    uint64_t seen_ = 0;
    bool truncated_ = false;
};

}  // namespace

Result<void> search_files(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const os::Fd top = TRY(root.open_directory(request.path));
    Search search(request);
    const os::TreeBounds bounds{.entries_max = UINT64_MAX,
                                .depth_max = limits::kFileDepthMax,
                                .too_deep = os::TreeBounds::TooDeep::Ignore,
                                .unreadable = os::TreeBounds::Unreadable::Skip};
    const auto walked = os::walk_tree(
        top, bounds, [&search](const TreeEntry& entry) { return search.take(entry); });
    if (!walked) return path_failure("searching", request.path, walked.error());
    return channel.send(FrameKind::Json, search.answer());
}

}  // namespace cloister::agent
