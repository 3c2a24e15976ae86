#include "jail/before_exec.h"

#include "os/privileges.h"

namespace cloister::jail {

void load_birth_filter(Steps& steps, const char* filter, size_t bytes) {
    steps.at(Stage::Filter);
    const int failed = os::load_filter(filter, bytes);
    if (failed != 0) steps.fail(failed);
}

}  // namespace cloister::jail
