#include "jail/template_root.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <string>

namespace cloister::jail {

Result<void> check_template_root(const os::Fd& root) {
    constexpr std::array kDirectories = {"proc", "dev", "sys", "tmp", "run"};
    for (const char* name : kDirectories) {
        struct stat file{};
        if (::fstatat(root.get(), name, &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(file.st_mode)) {
            continue;
        }
        return make_error(ErrorKind::InvalidArgument,
                          std::string("the template's /") + name +
                              " is not a directory: build the template with an empty one there");
    }
    return {};
}

}  // namespace cloister::jail
