// StdinFifo: the stdin of one run for a driver that cannot take a descriptor from a message. It is
// opened by its path, which only the user can, and is gone when the run has ended.
#pragma once

#include <string>
#include <string_view>

#include "os/fd.h"

namespace cloister::agent {

class StdinFifo {
  public:
    // Makes the FIFO in `directory`, and that if need be.
    static Result<StdinFifo> create(const std::string& directory, std::string_view run);
    StdinFifo() = default;
    StdinFifo(StdinFifo&& other) noexcept;
    StdinFifo& operator=(StdinFifo&& other) noexcept;
    ~StdinFifo() { remove(); }

    const std::string& path() const { return path_; }
    // A descriptor to write to, which never waits.
    Result<os::Fd> writer() const { return writer_.duplicate(); }
    // The driver has opened it. Before, both ends are kept open here: it must neither wait for a
    // writer that has already finished, nor must a writer find nobody.
    void let_go();
    void remove();

  private:
    std::string path_;
    os::Fd reader_, writer_;
};

}  // namespace cloister::agent
