// stat, list, mkdir, move, copy, remove, change (file_ops.h).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/ids.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "os/resolve.h"
#include "os/tree.h"
#include "programs/agent/answers.h"
#include "programs/agent/file_entry.h"
#include "programs/agent/file_ops.h"
#include "programs/agent/file_replacement.h"
#include "wire/file_limits.h"

namespace cloister::agent {
namespace {

using os::TreeBounds;
using os::TreeEntry;
using os::Visit;

Result<void> answer_entry(FileChannel& channel, const std::string& entry) {
    return channel.send(FrameKind::Json, ok_answer(fmt::format(R"("entry":{})", entry)));
}

Result<struct stat> must_be_there(const Place& place) {
    const auto about = TRY(look_at(place));
    if (!about) return path_failure("looking at", place.path, ENOENT);
    return *about;
}

Result<std::string> describe_place(const Place& place) {
    const struct stat about = TRY(must_be_there(place));
    return describe(place.directory, place.name, place.path, about);
}

// Whether `name` is one that a request can be about: not ".", which the root and "a/.." have.
Result<void> check_has_name(const Place& place) {
    if (place.name != ".") return {};
    return invalid_field("path", place.path + " names no entry of a directory");
}

// --- Listing ---

// Paths in the order of a walk: "/" sorts before every other character.
bool comes_after(std::string_view path, std::string_view mark) {
    const auto key = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
    return std::ranges::lexicographical_compare(mark, path, {}, key, key);
}

class Page {
  public:
    explicit Page(const FileRequest& request) : request_(request) {}

    Visit take(const TreeEntry& entry) {
        const Visit onward = entry.depth < request_.depth ? Visit::Descend : Visit::Skip;
        if (!request_.after.empty() && !comes_after(entry.path, request_.after)) {
            const bool on_the_way =
                request_.after == entry.path || request_.after.starts_with(entry.path + "/");
            return on_the_way ? onward : Visit::Skip;
        }
        if (count_ == request_.limit || text_.size() > limits::kFilePageBytes) {
            more_ = true;
            return Visit::Stop;
        }
        text_ += count_++ == 0 ? "" : ",";
        text_ +=
            describe(entry.directory, entry.name, joined(request_.path, entry.path), entry.about);
        last_ = entry.path;
        return onward;
    }

    std::string answer() const {
        std::string out = fmt::format(R"("entries":[{}])", text_);
        if (more_) out += fmt::format(R"(,"next":{})", json_quote(last_));
        return ok_answer(out);
    }

  private:
    const FileRequest& request_;
    std::string text_, last_;
    size_t count_ = 0;
    bool more_ = false;
};

// --- Copying ---

Result<void> copy_regular(const os::Fd& from, const Place& to, mode_t mode, IfThere if_there,
                          Durable durable) {
    Replacement file = TRY(Replacement::create(to));
    const auto copied = os::copy_bytes(from, file.file());
    if (!copied) return path_failure("copying to", to.path, copied.error());
    copy_metadata(from, file.file());
    return file.commit(mode, if_there, durable);
}

Result<void> copy_link(const os::Fd& directory, const std::string& name, os::TreeBuilder& build,
                       const std::string& path) {
    std::string target(limits::kPathMax, '\0');
    const ssize_t got = ::readlinkat(directory.get(), name.c_str(), target.data(), target.size());
    if (got < 0) return path_failure("copying", path, errno);
    target.resize(static_cast<size_t>(got));
    return build.symlink(path, target);
}

Result<Visit> copy_entry(const TreeEntry& entry, os::TreeBuilder& build) {
    if (S_ISDIR(entry.about.st_mode)) {
        TRY_OK(build.directory(entry.path, (entry.about.st_mode & 0777) | 0700));
    } else if (S_ISLNK(entry.about.st_mode)) {
        TRY_OK(copy_link(entry.directory, entry.name, build, entry.path));
    } else if (S_ISREG(entry.about.st_mode)) {
        const os::Fd from =
            TRY(os::open_at(entry.directory, entry.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
        const os::Fd to = TRY(build.file(entry.path, 0600));
        TRY_OK(os::copy_bytes(from, to));
        copy_metadata(from, to);
        if (::fchmod(to.get(), entry.about.st_mode & 0777) != 0)
            return path_failure("copying", entry.path, errno);
    }
    return Visit::Descend;  // pipes, sockets and devices are left out
}

// A directory beside its place, put there at once; removed if it does not get there.
class NewDirectory {
  public:
    static Result<NewDirectory> create(const Place& place) {
        NewDirectory made(place);
        if (::mkdirat(place.directory.get(), made.name_.c_str(), 0755) != 0)
            return path_failure("making", place.path, errno);
        return made;
    }
    NewDirectory(NewDirectory&& other) noexcept
        : place_(other.place_), name_(std::exchange(other.name_, {})) {}
    ~NewDirectory() {
        // A failure has its answer already; what cannot be removed stays.
        if (!name_.empty()) (void)os::remove_tree(place_->directory, name_);
    }
    Result<os::Fd> open() const {
        return os::open_at(place_->directory, name_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    }
    Result<void> commit() {
        const int directory = place_->directory.get();
        if (::renameat2(directory, name_.c_str(), directory, place_->name.c_str(),
                        RENAME_NOREPLACE) != 0)
            return path_failure("making", place_->path, errno);
        name_.clear();
        return {};
    }

  private:
    explicit NewDirectory(const Place& place) : place_(&place), name_(".cloister-" + new_id()) {}
    const Place* place_;
    std::string name_;
};

Error about_copy(const std::string& path, const Error& error) {
    return error.os_error == 0 ? error : path_failure("copying", path, error.os_error);
}

Result<void> copy_directory(const Place& from, const Place& to) {
    const auto source = os::open_at(from.directory, from.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!source) return path_failure("copying", from.path, source.error());
    NewDirectory made = TRY(NewDirectory::create(to));
    os::TreeBuilder build(TRY(made.open()));
    // Where a directory is copied into itself, its copy is not copied again.
    struct stat own{};
    if (::fstat(build.top().get(), &own) != 0) return path_failure("copying", to.path, errno);
    const auto copied =
        os::walk_tree(*source, {.entries_max = limits::kTreeEntriesMax},
                      [&](const TreeEntry& entry) -> Result<Visit> {
                          if (entry.about.st_ino == own.st_ino && entry.about.st_dev == own.st_dev)
                              return Visit::Skip;
                          return copy_entry(entry, build);
                      });
    if (!copied) return about_copy(from.path, copied.error());
    return made.commit();
}

// `about`: of what `from` is.
Result<void> copy_place(const FileRequest& request, const Place& from, const struct stat& about,
                        const Place& to) {
    const IfThere if_there = request.overwrite ? IfThere::Replace : IfThere::Refuse;
    const Durable durable = request.durable ? Durable::Yes : Durable::No;
    if (S_ISDIR(about.st_mode)) return copy_directory(from, to);
    if (S_ISLNK(about.st_mode)) {
        os::TreeBuilder build(TRY(os::open_at(to.directory, ".", O_RDONLY | O_DIRECTORY)));
        const auto there = TRY(look_at(to));
        if (there && !request.overwrite) return path_failure("copying to", to.path, EEXIST);
        return copy_link(from.directory, from.name, build, to.name);
    }
    if (!S_ISREG(about.st_mode)) {
        return invalid_field("path", from.path + " is neither a file nor a directory nor a link");
    }
    const auto file = os::open_at(from.directory, from.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!file) return path_failure("copying", from.path, file.error());
    return copy_regular(*file, to, about.st_mode & 0777, if_there, durable);
}

Result<void> sync_if_durable(const FileRequest& request, const Place& to) {
    if (!request.durable) return {};
    const auto top = os::open_at(to.directory, ".", O_RDONLY | O_DIRECTORY);
    if (!top) return path_failure("syncing", to.path, top.error());
    if (::syncfs(top->get()) != 0) return path_failure("syncing", to.path, errno);
    return {};
}

// Between two file systems, or out of a template's directory: a rename cannot do it.
Result<void> move_by_copy(const FileRequest& request, const Place& from, const Place& to) {
    const struct stat about = TRY(must_be_there(from));
    TRY_OK(copy_place(request, from, about, to));
    const auto removed = os::remove_tree(from.directory, from.name);
    if (!removed) return path_failure("removing", from.path, removed.error());
    return {};
}

}  // namespace

Result<void> stat_file(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    if (request.follow) {
        const os::Fd file = TRY(root.open(request.path, O_PATH));
        return answer_entry(channel, TRY(describe_open(file, request.path)));
    }
    const Place place = TRY(root.locate(request.path));
    return answer_entry(channel, TRY(describe_place(place)));
}

Result<void> list_files(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const os::Fd top = TRY(root.open_directory(request.path));
    Page page(request);
    const TreeBounds bounds{.entries_max = UINT64_MAX,
                            .depth_max = limits::kFileDepthMax,
                            .too_deep = TreeBounds::TooDeep::Ignore,
                            .unreadable = TreeBounds::Unreadable::Skip};
    const auto walked = os::walk_tree(
        top, bounds, [&page](const TreeEntry& entry) -> Result<Visit> { return page.take(entry); });
    if (!walked) return path_failure("listing", request.path, walked.error());
    return channel.send(FrameKind::Json, page.answer());
}

Result<void> make_directory(const FileRequest& request, const FileRoot& root,
                            FileChannel& channel) {
    const Place place = TRY(root.locate_or_make(request.path));
    const bool made =
        ::mkdirat(place.directory.get(), place.name.c_str(), request.mode.value_or(0755)) == 0;
    if (!made && (errno != EEXIST || request.exclusive))
        return path_failure("making", request.path, errno);
    const os::Fd directory = TRY(root.open(request.path, O_PATH | O_DIRECTORY));
    if (made && request.mode && ::chmod(os::path_of(directory).c_str(), *request.mode) != 0)
        return path_failure("making", request.path, errno);
    if (request.durable) TRY_OK(sync_directory(place.directory, request.path));
    const std::string entry = TRY(describe_open(directory, request.path));
    return channel.send(FrameKind::Json,
                        ok_answer(fmt::format(R"("created":{},"entry":{})", made, entry)));
}

Result<void> move_file(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const Place from = TRY(root.locate(request.path));
    TRY_OK(check_has_name(from));
    TRY(must_be_there(from));
    const Place to = TRY(root.locate_or_make(request.to));
    TRY_OK(check_has_name(to));
    const unsigned flags = request.overwrite ? 0 : RENAME_NOREPLACE;
    if (::renameat2(from.directory.get(), from.name.c_str(), to.directory.get(), to.name.c_str(),
                    flags) != 0) {
        if (errno != EXDEV) return path_failure("moving to", request.to, errno);
        TRY_OK(move_by_copy(request, from, to));
    }
    TRY_OK(sync_if_durable(request, to));
    return answer_entry(channel, TRY(describe_place(to)));
}

Result<void> copy_file(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const Place from = TRY(root.locate(request.path));
    TRY_OK(check_has_name(from));
    const struct stat about = TRY(must_be_there(from));
    if (S_ISDIR(about.st_mode) && !request.recursive) {
        return invalid_field("recursive", from.path + " is a directory: ask for `recursive`");
    }
    const Place to = TRY(root.locate_or_make(request.to));
    TRY_OK(check_has_name(to));
    TRY_OK(copy_place(request, from, about, to));
    if (S_ISDIR(about.st_mode)) TRY_OK(sync_if_durable(request, to));
    return answer_entry(channel, TRY(describe_place(to)));
}

Result<void> remove_file(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const Place place = TRY(root.locate(request.path));
    TRY_OK(check_has_name(place));
    const struct stat about = TRY(must_be_there(place));
    if (S_ISDIR(about.st_mode) && !request.recursive) {
        if (::unlinkat(place.directory.get(), place.name.c_str(), AT_REMOVEDIR) == 0)
            return channel.send(FrameKind::Json, ok_answer());
        if (errno == ENOTEMPTY) {
            return make_error(ErrorKind::FailedPrecondition,
                              request.path + " is not empty: ask for `recursive`");
        }
        return path_failure("removing", request.path, errno);
    }
    const auto removed = os::remove_tree(place.directory, place.name);
    if (!removed) return path_failure("removing", request.path, removed.error());
    return channel.send(FrameKind::Json, ok_answer());
}

Result<void> change_file(const FileRequest& request, const FileRoot& root, FileChannel& channel) {
    const os::Fd file = TRY(root.open(request.path, O_PATH));
    if (request.mode && ::chmod(os::path_of(file).c_str(), *request.mode) != 0)
        return path_failure("changing the mode of", request.path, errno);
    if (request.metadata) TRY_OK(set_metadata(file, request.path, *request.metadata));
    return answer_entry(channel, TRY(describe_open(file, request.path)));
}

}  // namespace cloister::agent
