// Error: why an operation failed, in words that tell the caller how to react.
//
// Kinds name the caller's reaction. contract/errors.md maps each kind to the status of every face.
// How a run ended is never an Error: see RunEnd in wire/run_end.h.
#pragma once

#include <string>
#include <string_view>

namespace cloister {

enum class ErrorKind {
    InvalidArgument,     // the request is wrong whatever the state: change it
    Unauthenticated,     // no key, or not a valid one
    PermissionDenied,    // a valid key that may not do this
    NotFound,            // no such thing for this project
    AlreadyExists,       // the name is taken
    FailedPrecondition,  // the thing is not in a state that allows this: change the state first
    ResourceExhausted,   // a limit or quota: free something, or wait
    TooLarge,            // an input over a limit: send less
    DeadlineExceeded,    // it did not finish in time
    Cancelled,           // the caller went away
    Unavailable,         // try again later: a part of the service is not there
    Unimplemented,       // this build or host cannot do it
    Internal,            // a fault of ours: report it
};

// The canonical word of a kind: "invalid_argument", "not_found", ...
std::string_view to_string(ErrorKind kind);

struct Error {
    ErrorKind kind = ErrorKind::Internal;
    std::string message;  // one sentence for the caller: what is wrong, and the way out
    std::string field;    // the input field at fault ("timeout_ms"), or empty
    int os_error = 0;     // errno behind it, or 0

    // The same error with `context` in front of its message ("creating the pool: No space left").
    Error within(std::string_view context) &&;
};

Error make_error(ErrorKind kind, std::string message);
Error invalid_field(std::string field, std::string message);
// An Internal error (Unavailable for the kinds of errno that pass by themselves) that names `what`.
Error os_failure(std::string_view what, int error_number);
// os_failure with the current errno.
Error last_os_failure(std::string_view what);

}  // namespace cloister
