// Asio's error codes as Errors. Internal to this room.
#pragma once

#include <boost/asio/error.hpp>
#include <string_view>

#include "base/error.h"

namespace cloister {

// A call that ended because its socket was closed or cancelled is Cancelled; the rest is an
// os_failure.
inline Error loop_failure(std::string_view what, const boost::system::error_code& failure) {
    if (failure == boost::asio::error::operation_aborted ||
        failure == boost::asio::error::bad_descriptor) {
        return make_error(ErrorKind::Cancelled, std::string(what) + ": closed on our side");
    }
    return os_failure(what, failure.value());
}

}  // namespace cloister
