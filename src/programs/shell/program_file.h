// ProgramFile: the file that a program's code is executed from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cloister::shell {

class ProgramFile {
  public:
    // The first of `names` that is a file with exactly this code, as `cloister run` puts it beside
    // the rest; else a temporary file with the last part of the first name, which goes with this
    // object. Relative names are looked for in the working directory.
    static Result<ProgramFile> find_or_make(const std::vector<std::string>& names,
                                            std::string_view code);
    ProgramFile(ProgramFile&& other) noexcept;
    ProgramFile& operator=(ProgramFile&&) = delete;
    ~ProgramFile();

    const std::string& path() const { return path_; }

  private:
    ProgramFile(std::string path, std::string directory)
        : path_(std::move(path)), directory_(std::move(directory)) {}

    std::string path_;
    std::string directory_;  // to be removed; empty: none
};

}  // namespace cloister::shell
