// Bytes of a file to a socket without a way through our memory.
#pragma once

#include <cstdint>

#include "os/fd.h"

namespace cloister::os {

// What of the `length` bytes at `offset` the socket (a descriptor that the caller keeps open) takes
// now: 0 if it takes none at the moment. TooLarge if the file has no byte there (any more). May
// wait for the disk.
Result<uint64_t> send_file(int socket, const Fd& file, uint64_t offset, uint64_t length);
// The size of a file whose bytes may be sent so: a regular one, and no such that the kernel makes
// up while it is read (InvalidArgument).
Result<uint64_t> size_to_send(const Fd& file);

}  // namespace cloister::os
