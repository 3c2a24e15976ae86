// Blocking TCP clients, with time limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "os/fd.h"

namespace cloister::os {

// A connection to the first address of `host` that answers, with TCP_NODELAY. Unavailable if none
// does in time.
Result<Fd> connect_tcp(const std::string& host, const std::string& port, int64_t timeout_ms);
// At least one byte, empty at the end of the stream; DeadlineExceeded after `timeout_ms` (negative:
// waits for ever).
Result<std::string> receive_some(const Fd& socket, size_t max_bytes, int64_t timeout_ms);
// All of `bytes`; a closed connection is an error, never a SIGPIPE.
Result<void> send_all(const Fd& socket, std::string_view bytes);
// Of a non-blocking socket: how much it took now (0: none), a closed one as above.
Result<size_t> send_now(const Fd& socket, std::string_view bytes);
// Of a non-blocking socket: nothing if there are no bytes now, empty at the end of the stream.
Result<std::optional<std::string>> receive_now(const Fd& socket, size_t max_bytes);
// Says that nothing more will be sent.
void shutdown_write(const Fd& socket);

}  // namespace cloister::os
