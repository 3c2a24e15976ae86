#include "programs/cli/exit_code.h"

namespace cloister::cli {
namespace {

constexpr int kKernelDied = 118;  // with no code of its own, or with 0

// What a shell can see of a program's code; a failure stays one.
int visible_failure(int exit_code) {
    const int low_byte = exit_code & 0xFF;
    return low_byte == 0 ? 1 : low_byte;
}

}  // namespace

int exit_code_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::InvalidArgument:
            return kWrongUsage;
        case ErrorKind::Unauthenticated:
        case ErrorKind::PermissionDenied:
            return 77;
        case ErrorKind::NotFound:
            return 66;
        case ErrorKind::AlreadyExists:
            return 73;
        case ErrorKind::FailedPrecondition:
            return 69;
        case ErrorKind::ResourceExhausted:
            return 75;
        case ErrorKind::TooLarge:
            return 65;
        case ErrorKind::DeadlineExceeded:
            return 75;
        case ErrorKind::Cancelled:
            return 130;
        case ErrorKind::Unavailable:
            return 75;
        case ErrorKind::Unimplemented:
        case ErrorKind::Internal:
            return 70;
    }
    return 70;
}

int exit_code_of(EndReason reason, std::optional<int> exit_code) {
    switch (reason) {
        case EndReason::Ok:
            return 0;
        case EndReason::Error:
            return visible_failure(exit_code.value_or(1));
        case EndReason::Timeout:
            return 124;
        case EndReason::Oom:
            return 137;
        case EndReason::Interrupted:
            return 130;
        case EndReason::Cancelled:
            return 143;
        case EndReason::OutputLimit:
            return 122;
        case EndReason::CpuLimit:
            return 121;
        case EndReason::PidsLimit:
            return 120;
        case EndReason::DiskFull:
            return 119;
        case EndReason::KernelDied:
            return exit_code.value_or(0) > 0 ? visible_failure(*exit_code) : kKernelDied;
        case EndReason::SandboxLost:
            return 117;
    }
    return 70;
}

}  // namespace cloister::cli
