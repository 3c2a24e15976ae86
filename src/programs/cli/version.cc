#include "programs/cli/command.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/terminal.h"

namespace cloister::cli {

int version_command(const Words& words) {
    if (!words.empty()) {
        say("`version` takes no arguments");
        return kWrongUsage;
    }
    print("cloister " CLOISTER_VERSION);
    return 0;
}

}  // namespace cloister::cli
