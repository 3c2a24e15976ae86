// file.read and file.write (contract/agent-protocol.md), served on their own connection by a child
// that is the sandbox's user. Blocking: a slow disk or client stops nobody else.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace cloister::agent {

struct FileRead {
    std::string path;
    uint64_t offset = 0;
    std::optional<uint64_t> length;
};

struct FileWrite {
    std::string path;
    mode_t mode = 0644;
};

// Each answers on `connection`, the failure too.
void serve_read(const FileRead& request, const os::Fd& connection);
void serve_write(const FileWrite& request, const os::Fd& connection);

}  // namespace cloister::agent
