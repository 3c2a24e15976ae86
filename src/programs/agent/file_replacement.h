// Replacement: a file that is written where nobody sees it, and takes the place of the old one at
// once and as a whole, or leaves nothing.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"
#include "programs/agent/file_place.h"

namespace cloister::agent {

enum class Durable { No, Yes };
enum class IfThere { Replace, Refuse };

class Replacement {
  public:
    // `place`: not a directory. It stays where it is meanwhile.
    static Result<Replacement> create(const Place& place);
    Replacement(Replacement&& other) noexcept;
    ~Replacement();

    const os::Fd& file() const { return file_; }
    Result<void> append(std::string_view bytes) const;
    // AlreadyExists if something is there that may not be replaced.
    Result<void> commit(mode_t mode, IfThere if_there, Durable durable);

  private:
    explicit Replacement(const Place& place) : place_(&place) {}
    Result<void> put_in_place(IfThere if_there);
    Result<void> name_it();

    const Place* place_;
    os::Fd file_;
    std::string temporary_;  // its name beside the target; empty while it has none
};

// Waits until the clock of files has ticked: a run that begins next must not take this file for one
// of its own, and file times are no finer than the kernel's tick.
void wait_for_the_next_tick(const os::Fd& file);
// On disk: the directory's own entries.
Result<void> sync_directory(const os::Fd& directory, const std::string& path);

}  // namespace cloister::agent
