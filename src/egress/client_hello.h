// The server name in a TLS ClientHello. Sans I/O: bytes in any pieces, records of any size, the
// hello spread over as many of them as its sender likes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cloister::egress {

inline constexpr size_t kHelloMax = 64 * 1024;

class ClientHello {
  public:
    // Takes what came next. False if more is needed; InvalidArgument for what is no ClientHello.
    // After true, or an error, no more is fed.
    Result<bool> feed(std::string_view bytes);
    // Canonical; nullopt if the hello names nobody (or an address). After feed() said true.
    const std::optional<std::string>& server_name() const { return server_name_; }

  private:
    Result<bool> take_records();
    Result<void> read_hello(std::string_view body);
    Result<void> read_extensions(std::string_view extensions);
    Result<void> read_server_name(std::string_view extension);

    std::string pending_;    // of a record that is not whole yet
    std::string handshake_;  // the records' contents, joined
    size_t fed_ = 0;
    std::optional<std::string> server_name_;
    bool saw_server_name_ = false;
};

}  // namespace cloister::egress
