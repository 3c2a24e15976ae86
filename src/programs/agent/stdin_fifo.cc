#include "programs/agent/stdin_fifo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/limits.h"

namespace cloister::agent {

Result<StdinFifo> StdinFifo::create(const std::string& directory, std::string_view run) {
    // Its names are those of runs, which are nobody's to list.
    if (::mkdir(directory.c_str(), 0711) != 0 && errno != EEXIST) {
        return last_os_failure("making the directory for stdin");
    }
    StdinFifo fifo;
    fifo.path_ = directory + "/" + std::string(run);
    if (::mkfifo(fifo.path_.c_str(), 0600) != 0) {
        fifo.path_.clear();  // not ours to remove
        return last_os_failure("making the FIFO for stdin");
    }
    fifo.reader_ = TRY(os::open_file(fifo.path_, O_RDONLY | O_NONBLOCK));
    fifo.writer_ = TRY(os::open_file(fifo.path_, O_WRONLY | O_NONBLOCK));
    if (::fchmod(fifo.reader_.get(), 0400) != 0 ||
        ::fchown(fifo.reader_.get(), limits::kUserId, limits::kUserId) != 0) {
        return last_os_failure("handing the FIFO for stdin to the user");
    }
    return fifo;
}

StdinFifo::StdinFifo(StdinFifo&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      reader_(std::move(other.reader_)),
      writer_(std::move(other.writer_)) {}

StdinFifo& StdinFifo::operator=(StdinFifo&& other) noexcept {
    if (this == &other) return *this;
    remove();
    path_ = std::exchange(other.path_, {});
    reader_ = std::move(other.reader_);
    writer_ = std::move(other.writer_);
    return *this;
}

void StdinFifo::let_go() {
    reader_.reset();
    writer_.reset();
}

void StdinFifo::remove() {
    let_go();
    if (!path_.empty()) ::unlink(path_.c_str());
    path_.clear();
}

}  // namespace cloister::agent
