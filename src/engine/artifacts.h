// Artifacts: files of one-call runs that outlive their sandbox for an hour:
// STATE/artifacts/RUN/INDEX.
//
// The directories are the whole state: what is there is kept, and what is too old by its time goes.
// Files are read and written on worker threads; everything else is the loop's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/files.h"
#include "loop/loop.h"

namespace cloister::engine {

class Artifacts {
  public:
    explicit Artifacts(std::string directory) : directory_(std::move(directory)) {}

    // Copies `file`; at most `max_bytes`: TooLarge beyond, and nothing is kept of it. Answers the
    // size.
    Task<Result<uint64_t>> keep(std::string run, size_t index, OpenFile file,
                                uint64_t max_bytes) const;
    // NotFound if it is not kept (any more).
    Task<Result<OpenFile>> open(std::string run, size_t index) const;
    // Removes what is older than limits::kArtifactKeepMs.
    Task<void> expire() const;

  private:
    std::string path_of(const std::string& run, size_t index) const;

    const std::string directory_;
};

}  // namespace cloister::engine
