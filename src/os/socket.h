// Unix sockets, with descriptors passed beside the bytes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/fd.h"

namespace cloister::os {

enum class SocketKind { Stream, SeqPacket };

// A listener bound to `path` (an old socket file there is removed), close-on-exec and non-blocking.
Result<Fd> listen_unix(const std::string& path, SocketKind kind, int backlog);
// A connection to `path`, blocking.
Result<Fd> connect_unix(const std::string& path, SocketKind kind);
// A waiting connection of a listener, non-blocking; nullopt if there is none (any more).
Result<std::optional<Fd>> accept_connection(const Fd& listener);
// How much may wait for a reader before a non-blocking sender is refused. Asks for root.
Result<void> set_send_buffer(const Fd& socket, int bytes);
struct SocketPair {
    Fd ours, theirs;
};
Result<SocketPair> make_socket_pair(SocketKind kind);

struct Peer {
    pid_t pid = 0;
    uid_t uid = 0;
};
Result<Peer> peer_of(const Fd& socket);

inline constexpr size_t kPassedFdsMax = 32;

// One message with descriptors (SCM_RIGHTS). For stream sockets `bytes` must not be empty.
Result<void> send_with_fds(const Fd& socket, std::string_view bytes, const std::vector<int>& fds);
struct Received {
    std::string bytes;  // empty: the other end is closed
    std::vector<Fd> fds;
};
Result<Received> receive_with_fds(const Fd& socket, size_t max_bytes,
                                  Blocking blocking = Blocking::Yes);

}  // namespace cloister::os
