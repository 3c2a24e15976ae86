#include "programs/shell/program_file.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "os/fd.h"

namespace cloister::shell {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDirectory = "/tmp/cloister-run-XXXXXX";

bool holds(const std::string& path, std::string_view code) {
    std::error_code failure;  // answers false
    if (!fs::is_regular_file(path, failure) || fs::file_size(path, failure) != code.size()) {
        return false;
    }
    const auto text = os::read_file(path, code.size());
    return text && *text == code;
}

}  // namespace

Result<ProgramFile> ProgramFile::find_or_make(const std::vector<std::string>& names,
                                              std::string_view code) {
    for (const std::string& name : names) {
        if (holds(name, code)) return ProgramFile(name, {});
    }
    std::string directory(kDirectory);
    if (::mkdtemp(directory.data()) == nullptr)
        return last_os_failure("making a directory in /tmp");
    std::string name = fs::path(names.front()).filename().string();
    if (name.empty() || name == "." || name == "..") name = "program";
    ProgramFile made(directory + "/" + name, directory);
    TRY_OK(os::write_file_atomically(made.path_, code, 0600));
    return made;
}

ProgramFile::ProgramFile(ProgramFile&& other) noexcept
    : path_(std::move(other.path_)), directory_(std::exchange(other.directory_, {})) {}

ProgramFile::~ProgramFile() {
    if (directory_.empty()) return;
    std::error_code failure;  // the program may have removed it itself
    fs::remove_all(directory_, failure);
}

}  // namespace cloister::shell
