// What a template's root file system must be like for a sandbox to be made from it.
#pragma once

#include "os/fd.h"

namespace cloister::jail {

// InvalidArgument unless the places that a sandbox mounts something on, or that programs rely on,
// are real directories: a symbolic link there could lead a mount astray.
Result<void> check_template_root(const os::Fd& root);

}  // namespace cloister::jail
