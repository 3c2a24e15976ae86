// Trees of files below a held directory: walked, copied, removed, built. Everything goes by
// (directory descriptor, name) and follows no link, so that a tree which somebody else changes
// meanwhile never leads elsewhere.
//
// Threading: any thread; calls block.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>

#include "os/fd.h"

namespace cloister::os {

// --- Walking ---

struct TreeEntry {
    const Fd& directory;  // that holds it
    std::string name;
    std::string path;  // relative to the top: "a/b"
    struct stat about{};
    int depth = 1;  // 1: directly below the top
};

enum class Visit { Descend, Skip, Stop };  // Descend: into it, if it is a directory

struct TreeBounds {
    uint64_t entries_max = UINT64_MAX;  // TooLarge beyond
    int depth_max = 128;                // directories at this depth are not entered; see too_deep
    enum class TooDeep { Ignore, Fail } too_deep = TooDeep::Fail;
    enum class Unreadable { Skip, Fail } unreadable = Unreadable::Fail;
};

// Calls `visit` for each entry, parents first, names in the order of their bytes.
Result<void> walk_tree(const Fd& top, const TreeBounds& bounds,
                       const std::function<Result<Visit>(const TreeEntry&)>& visit);

// --- Removing and copying ---

// Removes `name` in `directory` with all below it, however deep; nothing there is fine.
Result<void> remove_tree(const Fd& directory, const std::string& name);
// The bytes from where both files stand, shared with the original where the file system can.
Result<void> copy_bytes(const Fd& from, const Fd& to);

// --- Building ---

// Puts entries with relative paths below `top`. A path that is absolute, has a `..`, or leads
// through a link is refused (InvalidArgument); directories that it needs are made.
class TreeBuilder {
  public:
    explicit TreeBuilder(Fd top) : top_(std::move(top)) {}

    Result<void> directory(const std::string& path, mode_t mode);
    // A new file; an earlier one of this path goes.
    Result<Fd> file(const std::string& path, mode_t mode);
    Result<void> symlink(const std::string& path, const std::string& target);
    // A further name for a file that was built before.
    Result<void> hard_link(const std::string& path, const std::string& earlier);
    const Fd& top() const { return top_; }

  private:
    struct Place {
        Fd directory;
        std::string name;
    };
    Result<Place> place(const std::string& path);
    Result<Fd> make_way(const std::string& path);

    Fd top_;
    std::string last_way_;  // the directory of the entry before: mostly the same
    Fd last_directory_;
};

// Moves all that is below `from` (a directory beside it on the same file system) into `into`:
// directories are merged, files replace files. Looks first whether it can: FailedPrecondition, and
// nothing is moved, if a directory would have to be replaced by a file.
Result<void> merge_tree(const Fd& from, const Fd& into);

}  // namespace cloister::os
