#include "base/error.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace cloister {

std::string_view to_string(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::InvalidArgument:
            return "invalid_argument";
        case ErrorKind::Unauthenticated:
            return "unauthenticated";
        case ErrorKind::PermissionDenied:
            return "permission_denied";
        case ErrorKind::NotFound:
            return "not_found";
        case ErrorKind::AlreadyExists:
            return "already_exists";
        case ErrorKind::FailedPrecondition:
            return "failed_precondition";
        case ErrorKind::ResourceExhausted:
            return "resource_exhausted";
        case ErrorKind::TooLarge:
            return "too_large";
        case ErrorKind::DeadlineExceeded:
            return "deadline_exceeded";
        case ErrorKind::Cancelled:
            return "cancelled";
        case ErrorKind::Unavailable:
            return "unavailable";
        case ErrorKind::Unimplemented:
            return "unimplemented";
        case ErrorKind::Internal:
            return "internal";
    }
    return "internal";
}

Error Error::within(std::string_view context) && {
    message.insert(0, std::string(context) + ": ");
    return std::move(*this);
}

Error make_error(ErrorKind kind, std::string message) {
    return Error{.kind = kind, .message = std::move(message), .field = {}, .os_error = 0};
}

Error invalid_field(std::string field, std::string message) {
    return Error{.kind = ErrorKind::InvalidArgument,
                 .message = std::move(message),
                 .field = std::move(field),
                 .os_error = 0};
}

Error os_failure(std::string_view what, int error_number) {
    ErrorKind kind = ErrorKind::Internal;
    if (error_number == EAGAIN || error_number == EMFILE || error_number == ENFILE ||
        error_number == ENOMEM || error_number == ECONNREFUSED || error_number == EPIPE ||
        error_number == ECONNRESET) {
        kind = ErrorKind::Unavailable;
    } else if (error_number == ENOSPC || error_number == EDQUOT) {
        kind = ErrorKind::ResourceExhausted;
    }
    std::string message(what);
    message += ": ";
    message += std::generic_category().message(error_number);
    return Error{
        .kind = kind, .message = std::move(message), .field = {}, .os_error = error_number};
}

Error last_os_failure(std::string_view what) {
    return os_failure(what, errno);
}

}  // namespace cloister
