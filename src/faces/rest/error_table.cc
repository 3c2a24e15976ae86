#include "faces/rest/error_table.h"

#include "wire/json.h"

namespace cloister::rest {
namespace {

int status_of_kind(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::InvalidArgument:
            return 400;
        case ErrorKind::Unauthenticated:
            return 401;
        case ErrorKind::PermissionDenied:
            return 403;
        case ErrorKind::NotFound:
            return 404;
        case ErrorKind::AlreadyExists:
        case ErrorKind::FailedPrecondition:
            return 409;
        case ErrorKind::ResourceExhausted:
            return 429;
        case ErrorKind::TooLarge:
            return 413;
        case ErrorKind::DeadlineExceeded:
            return 504;
        case ErrorKind::Cancelled:
            return 499;
        case ErrorKind::Unavailable:
            return 503;
        case ErrorKind::Unimplemented:
            return 501;
        case ErrorKind::Internal:
            return 500;
    }
    return 500;
}

}  // namespace

int status_of(const Error& error) {
    const bool field_at_fault = error.kind == ErrorKind::InvalidArgument && !error.field.empty();
    return field_at_fault ? 422 : status_of_kind(error.kind);
}

std::string error_body(const Error& error, const std::string& request_id) {
    json::object inner{{"code", to_string(error.kind)}, {"message", error.message}};
    if (!error.field.empty()) inner["field"] = error.field;
    inner["request_id"] = request_id;
    return json::serialize(json::object{{"error", std::move(inner)}});
}

}  // namespace cloister::rest
