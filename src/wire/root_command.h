// What `sudo` inside a sandbox (programs/sudo) and the agent say to each other, over a unix stream
// socket that everybody in the sandbox reaches.
//
//     client: one byte, and beside it three descriptors: stdin, stdout, stderr of the command
//     client: length (4 bytes, little endian) · RootRequest
//     client: one byte for each signal that it passes on
//     agent:  RootReply, and the end
//
// A client that goes away ends its command.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cloister {

inline constexpr std::string_view kRootSocket = "/run/cloister/root.sock";
inline constexpr size_t kRootStdio = 3;

enum class RootIdentity : char { Root = 'r', User = 'u' };

struct RootRequest {
    RootIdentity identity = RootIdentity::Root;
    std::string cwd;
    std::vector<std::string> argv;  // the program's path first; empty: only asks whether it may
    std::vector<std::string> env;   // NAME=VALUE
};

struct RootReply {
    std::optional<int> exit_code;  // of the command, 128 + N after a signal N; 0 for a question
    std::string refusal;           // otherwise: why nothing was started
};

// With the length in front; TooLarge over kRootRequestMax.
Result<std::string> encode(const RootRequest& request);
// Without it. InvalidArgument for anything but a well-formed request.
Result<RootRequest> decode_root_request(std::string_view bytes);

std::string encode(const RootReply& reply);
// Unavailable for the bytes of an agent that died before it could answer.
Result<RootReply> decode_root_reply(std::string_view bytes);

}  // namespace cloister
