#include "jail/stage.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace cloister::jail {

std::string_view to_string(Stage stage) {
    switch (stage) {
        case Stage::Fork:
            return "forking in the nest";
        case Stage::Clone:
            return "making the namespaces";
        case Stage::IdMap:
            return "mapping the ids";
        case Stage::Born:
            return "reporting the birth";
        case Stage::Groups:
            return "entering the cgroups";
        case Stage::Mounts:
            return "making the file systems";
        case Stage::Root:
            return "entering the root file system";
        case Stage::Runtime:
            return "mounting the runtime";
        case Stage::Devices:
            return "making /dev";
        case Stage::Proc:
            return "mounting /proc";
        case Stage::Masks:
            return "masking /proc";
        case Stage::ProcView:
            return "covering files of /proc";
        case Stage::Names:
            return "setting the host name";
        case Stage::Loopback:
            return "starting the loopback interface";
        case Stage::Time:
            return "beginning the sandbox's time";
        case Stage::Affinity:
            return "choosing the CPUs";
        case Stage::Limits:
            return "setting the resource limits";
        case Stage::Descriptors:
            return "placing the descriptors";
        case Stage::Identity:
            return "dropping the privileges";
        case Stage::Filter:
            return "loading the system call filter";
        case Stage::Execute:
            return "executing the program";
    }
    return "an unknown stage";
}

Result<void> read_ready(int ready_fd) {
    std::array<char, sizeof(StageReport)> bytes{};
    const ssize_t got = ::read(ready_fd, bytes.data(), bytes.size());
    if (got == 1) return {};
    if (got != sizeof(StageReport)) {
        return make_error(ErrorKind::Internal, "the sandbox died before its agent was ready");
    }
    StageReport report;
    std::memcpy(&report, bytes.data(), sizeof(report));
    return stage_failure(report).within("starting the sandbox");
}

Error stage_failure(const StageReport& report) {
    return os_failure(std::string(to_string(report.stage)), report.error_number);
}

long Steps::must(long result) const {
    if (result == -1) fail(errno);
    return result;
}

void Steps::fail(int error_number) const {
    const StageReport report{.stage = stage_, .error_number = error_number};
    const ssize_t put = ::write(report_fd_, &report, sizeof(report));
    ::_exit(put == sizeof(report) ? 1 : 2);
}

}  // namespace cloister::jail
